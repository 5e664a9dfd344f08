"""SSIM of two raw float64 slices stacks by scikit-image, or by its formula in scipy where it is not installed.

usage: ssim_skimage.py IMAGE REFERENCE NZ NY NX     (raw little-endian float64 files; prints the mean over slices)
"""

import sys

import numpy as np


def scipy_ssim(x, y, data_range):
    from scipy.ndimage import gaussian_filter

    def blur(a):
        return gaussian_filter(a, 1.5, truncate=3.5)

    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    mx, my = blur(x), blur(y)
    vx, vy, vxy = blur(x * x) - mx * mx, blur(y * y) - my * my, blur(x * y) - mx * my
    ssim = (2 * mx * my + c1) * (2 * vxy + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    return ssim[5:-5, 5:-5].mean()


def skimage_ssim(x, y, data_range):
    from skimage.metrics import structural_similarity

    return structural_similarity(
        x, y, data_range=data_range, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
    )


def main():
    try:
        import skimage  # noqa: F401

        ssim = skimage_ssim
    except ImportError:
        ssim = scipy_ssim
    shape = [int(n) for n in sys.argv[3:6]]
    x, y = (np.fromfile(path, "<f8").reshape(shape) for path in sys.argv[1:3])
    data_range = y.max() - y.min()
    print(repr(float(np.mean([ssim(a, b, data_range) for a, b in zip(x, y)]))))


main()
