"""`torch.distributed.elastic`: what programs use when processes come and go."""
