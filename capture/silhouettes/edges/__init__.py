"""Where exactly a silhouette ends: half-way pixels, mattes, least cuts, the image's edges, thin ends."""
