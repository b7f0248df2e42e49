"""Container images: which versions go together, what a build is told, what is left out, and how a host starts one."""
