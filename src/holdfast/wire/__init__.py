"""What travels over HTTP: the shapes of requests and answers, and how they relate to the model."""
