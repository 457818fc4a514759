"""`torch.distributed.elastic.utils`: samplers and iterators."""
