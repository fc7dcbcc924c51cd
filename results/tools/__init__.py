"""What makes this repository's own results: reports, pictures, controls, data of one study."""
