"""What proto/http.yaml and the protos say: generated, but for this line."""
