"""Images: resizing, sampling at any place, patches, shuffles of pixels and channels."""
