"""The version, in the one place where it is written. Anyone may import it; the build reads it."""

__version__ = "0.1.0"
