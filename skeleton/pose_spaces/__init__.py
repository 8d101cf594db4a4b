"""Spaces of poses on the manifold of joint rotations: few numbers a pose, poses from few points, gaps, compression."""
