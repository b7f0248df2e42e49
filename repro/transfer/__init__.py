"""Evidence on its way from a host: frames on one channel, files in pieces, every file checked by its digest."""
