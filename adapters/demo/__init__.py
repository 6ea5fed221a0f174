"""Complete small applications on nonsuch; nothing in the package depends on them."""
