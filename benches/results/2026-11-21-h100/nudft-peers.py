import torch
def rate(dtype, rows, K=65536, N=256, tf32=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a = (torch.rand(rows, K, device='cuda', dtype=torch.float32) - .5).to(dtype)
    b = (torch.rand(K, N, device='cuda', dtype=torch.float32) - .5).to(dtype)
    for _ in range(3): a @ b
    torch.cuda.synchronize(); ts = []
    for _ in range(15):
        s, e = torch.cuda.Event(True), torch.cuda.Event(True)
        s.record(); a @ b; e.record(); torch.cuda.synchronize(); ts.append(s.elapsed_time(e) / 1e3)
    t = sorted(ts)[7]
    print(f'{str(dtype):16} tf32={tf32} {rows}x{K}x{N}: {1e3*t:.3f} ms, {rows*K*N/t:.3e} multiply-adds/s', flush=True)
rate(torch.float32, 16384); rate(torch.float32, 16384, tf32=True); rate(torch.float64, 8192); rate(torch.float16, 16384)
