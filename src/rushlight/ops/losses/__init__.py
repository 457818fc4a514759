"""Losses that many programs never use."""
