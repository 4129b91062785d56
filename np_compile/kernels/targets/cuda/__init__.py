"""The target CUDA C++, for NVRTC."""
