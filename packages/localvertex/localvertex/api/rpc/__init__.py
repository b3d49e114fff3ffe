"""gRPC over TLS, the default transport of Google's clients, in front of the methods that REST serves."""
