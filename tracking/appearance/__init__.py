"""What bare parts of the body look like in the images, and whether these show them where the track has them."""
