"""Models that are served: the process of a serving container, endpoints and their traffic, and batch prediction."""
