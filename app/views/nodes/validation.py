"""What to test next?"""
