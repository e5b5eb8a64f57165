"""What rules about training runs judge by: loaded where a run logged what they judge."""
