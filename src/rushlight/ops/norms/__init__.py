"""Normalisation that many programs never use: by groups, by instances, by the mean square."""
