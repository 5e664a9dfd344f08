"""How far an image is from the truth: the numbers of the command `rayspin metrics`.

Images are any arrays of real or complex numbers, `[y, x]` with any axes before these. NRMSE = sqrt(sum |I - I0|^2 / sum |I0|^2),
PSNR = 20 log10(max |I0| / sqrt(MSE)), SSIM is Wang's with Gaussian windows of 11 x 11 pixels.

>>> import numpy as np
>>> from rayspin import metrics
>>> truth = np.arange(400.0).reshape(20, 20)
>>> found = metrics.compare(1.5 * truth, truth)
>>> found.nrmse, found.hint
(0.5, 'the images differ in scale: times 0.6667 the error is 0.000 %; fit=True takes that out')
>>> round(metrics.compare(1.5 * truth, truth, fit=True).ssim, 6)
1.0
"""

from ._rayspin import Quality, compare, nrmse, psnr, ssim

__all__ = ["Quality", "compare", "nrmse", "psnr", "ssim"]
