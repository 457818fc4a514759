"""The version, in the one place where it is written. The build reads it."""

__version__ = "0.1.0"
