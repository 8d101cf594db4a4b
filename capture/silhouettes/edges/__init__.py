"""Where exactly a silhouette ends: half-way pixels, mattes, least cuts, thin ends."""
