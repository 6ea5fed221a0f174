"""Ready-made token resolvers: a file of digests, signed tokens, a server that is asked."""
