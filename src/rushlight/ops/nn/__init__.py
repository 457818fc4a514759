"""Layers and losses: activations, softmax, normalization, embedding, linear, dropout."""
