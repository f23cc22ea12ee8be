/* The steps of a transform in FFT_T, float or double, for the host and the GPU: included once for each. FFT_(name) adds
 * the type's suffix. Both compute the same bits. */

struct FFT_(pair) {
  FFT_T re, im;
};

RDNA_SCALAR struct FFT_(pair) FFT_(times)(struct FFT_(pair) a, struct FFT_(pair) b) {
  return (struct FFT_(pair)){FFT_FMA(a.re, b.re, -(a.im * b.im)), FFT_FMA(a.re, b.im, a.im * b.re)};
}
RDNA_SCALAR struct FFT_(pair) FFT_(plus)(struct FFT_(pair) a, struct FFT_(pair) b) {
  return (struct FFT_(pair)){a.re + b.re, a.im + b.im};
}
RDNA_SCALAR struct FFT_(pair) FFT_(minus)(struct FFT_(pair) a, struct FFT_(pair) b) {
  return (struct FFT_(pair)){a.re - b.re, a.im - b.im};
}
/* a - i b, a + i b */
RDNA_SCALAR struct FFT_(pair) FFT_(minus_i)(struct FFT_(pair) a, struct FFT_(pair) b) {
  return (struct FFT_(pair)){a.re + b.im, a.im - b.re};
}
RDNA_SCALAR struct FFT_(pair) FFT_(plus_i)(struct FFT_(pair) a, struct FFT_(pair) b) {
  return (struct FFT_(pair)){a.re - b.im, a.im + b.re};
}
RDNA_SCALAR struct FFT_(pair) FFT_(conj_if)(uint32_t wanted, struct FFT_(pair) a) {
  if (wanted) a.im = -a.im;
  return a;
}

/* exp(-2 pi i k / n) for k < n <= 2^24. The angle is brought below pi/4 in whole numbers, so that nothing is lost;
 * series of Taylor, whose rest is below a quarter of a unit in the last place there. */
RDNA_SCALAR struct FFT_(pair) FFT_(turn)(uint32_t k, uint32_t n) {
  uint32_t below = 2 * k > n;
  k = below ? n - k : k;
  uint32_t left = 4 * k > n, u = left ? n - 2 * k : 2 * k; /* pi u / n, up to pi/2 */
  uint32_t steep = 4 * u > n, v = steep ? n - 2 * u : 2 * u;
  FFT_T t = (FFT_T)v / (FFT_T)n * (FFT_T)1.5707963267948966, z = t * t;
#if FFT_DOUBLE
  FFT_T s = FFT_FMA(z, 1.0 / 355687428096000, -1.0 / 1307674368000);
  s = FFT_FMA(s, z, 1.0 / 6227020800), s = FFT_FMA(s, z, -1.0 / 39916800), s = FFT_FMA(s, z, 1.0 / 362880);
  FFT_T c = FFT_FMA(z, 1.0 / 20922789888000, -1.0 / 87178291200);
  c = FFT_FMA(c, z, 1.0 / 479001600), c = FFT_FMA(c, z, -1.0 / 3628800);
#else
  FFT_T s = 1.0f / 362880, c = -1.0f / 3628800;
#endif
  s = FFT_FMA(s, z, (FFT_T)(-1.0 / 5040)), s = FFT_FMA(s, z, (FFT_T)(1.0 / 120));
  s = FFT_FMA(FFT_FMA(s, z, (FFT_T)(-1.0 / 6)), z * t, t);
  c = FFT_FMA(c, z, (FFT_T)(1.0 / 40320)), c = FFT_FMA(c, z, (FFT_T)(-1.0 / 720));
  c = FFT_FMA(FFT_FMA(FFT_FMA(c, z, (FFT_T)(1.0 / 24)), z, (FFT_T)-0.5), z, (FFT_T)1);
  FFT_T re = steep ? s : c, im = steep ? c : s;
  return (struct FFT_(pair)){left ? -re : re, below ? im : -im};
}
RDNA_SCALAR struct FFT_(pair) FFT_(chirp)(uint32_t i, uint32_t n) {
  return FFT_(turn)((uint32_t)((uint64_t)i * i % (2 * n)), 2 * n);
}

/* Transforms of the |radix| values v, in place. */
RDNA_SCALAR void FFT_(step4)(struct FFT_(pair) * v, uint32_t gap) {
  struct FFT_(pair) a = FFT_(plus)(v[0], v[2 * gap]), b = FFT_(minus)(v[0], v[2 * gap]);
  struct FFT_(pair) c = FFT_(plus)(v[gap], v[3 * gap]), d = FFT_(minus)(v[gap], v[3 * gap]);
  v[0] = FFT_(plus)(a, c), v[gap] = FFT_(minus_i)(b, d);
  v[2 * gap] = FFT_(minus)(a, c), v[3 * gap] = FFT_(plus_i)(b, d);
}
RDNA_SCALAR void FFT_(step8)(struct FFT_(pair) * v) {
  const FFT_T h = (FFT_T)0.70710678118654752;
  FFT_(step4)(v, 2), FFT_(step4)(v + 1, 2);
  struct FFT_(pair) o0 = v[1], o2 = v[5], e0 = v[0], e1 = v[2], e2 = v[4], e3 = v[6];
  struct FFT_(pair) o1 = {(v[3].re + v[3].im) * h, (v[3].im - v[3].re) * h};
  struct FFT_(pair) o3 = {(v[7].im - v[7].re) * h, -(v[7].re + v[7].im) * h};
  v[0] = FFT_(plus)(e0, o0), v[4] = FFT_(minus)(e0, o0);
  v[1] = FFT_(plus)(e1, o1), v[5] = FFT_(minus)(e1, o1);
  v[2] = FFT_(minus_i)(e2, o2), v[6] = FFT_(plus_i)(e2, o2);
  v[3] = FFT_(plus)(e3, o3), v[7] = FFT_(minus)(e3, o3);
}
/* 3, 5 or 7: values j and |radix| - j go together, as their factors are conjugate. */
RDNA_SCALAR void FFT_(step_odd)(struct FFT_(pair) * v, uint32_t radix) {
  const FFT_T c[3] = {(FFT_T)(radix == 3   ? -0.5
                              : radix == 5 ? 0.30901699437494742
                                           : 0.62348980185873353),
                      (FFT_T)(radix == 5 ? -0.80901699437494742 : -0.22252093395631440), (FFT_T)-0.90096886790241913};
  const FFT_T s[3] = {(FFT_T)(radix == 3   ? 0.86602540378443865
                              : radix == 5 ? 0.95105651629515357
                                           : 0.78183148246802981),
                      (FFT_T)(radix == 5 ? 0.58778525229247313 : 0.97492791218182361), (FFT_T)0.43388373911755812};
  struct FFT_(pair) sum[3], difference[3], first = v[0];
  FFT_UNROLL
  for (uint32_t j = 1; j <= radix / 2; j++) {
    sum[j - 1] = FFT_(plus)(v[j], v[radix - j]), difference[j - 1] = FFT_(minus)(v[j], v[radix - j]);
    v[0] = FFT_(plus)(v[0], sum[j - 1]);
  }
  FFT_UNROLL
  for (uint32_t k = 1; k <= radix / 2; k++) {
    struct FFT_(pair) a = first, b = {0, 0};
    FFT_UNROLL
    for (uint32_t j = 1; j <= radix / 2; j++) {
      uint32_t m = j * k % radix, over = m > radix / 2, at = (over ? radix - m : m) - 1;
      FFT_T sine = over ? -s[at] : s[at];
      a.re = FFT_FMA(c[at], sum[j - 1].re, a.re), a.im = FFT_FMA(c[at], sum[j - 1].im, a.im);
      b.re = FFT_FMA(sine, difference[j - 1].re, b.re), b.im = FFT_FMA(sine, difference[j - 1].im, b.im);
    }
    v[k] = FFT_(minus_i)(a, b), v[radix - k] = FFT_(plus_i)(a, b);
  }
}
/* The step in which transforms of |length| become those of |radix| * |length|; v are value |k| of |radix| of them. */
RDNA_SCALAR void FFT_(step)(struct FFT_(pair) * v, uint32_t radix, uint32_t k, uint32_t length) {
  if (length > 1) {
    struct FFT_(pair) w[8];
    w[1] = FFT_(turn)(k, radix * length);
    FFT_UNROLL
    for (uint32_t r = 1; r < radix; r++) {
      if (r > 1) w[r] = FFT_(times)(w[r / 2], w[r - r / 2]);
      v[r] = FFT_(times)(v[r], w[r]);
    }
  }
  if (radix == 2) {
    struct FFT_(pair) a = v[0];
    v[0] = FFT_(plus)(a, v[1]), v[1] = FFT_(minus)(a, v[1]);
  } else if (radix == 4) {
    FFT_(step4)(v, 1);
  } else if (radix == 8) {
    FFT_(step8)(v);
  } else {
    FFT_(step_odd)(v, radix);
  }
}

/* Value |i| of a line, whose x is at |x| and whose column is given. */
RDNA_SCALAR struct FFT_(pair) FFT_(read)(const struct fft_args *a, const FFT_T *x, uint32_t column, uint32_t i) {
  uint32_t index = column * a->x_column + i * a->x_step, at = index;
  struct FFT_(pair) v = {0, 0};
  if (a->flags & FFT_CHIRP) {
    at = index < a->chirp ? index : a->whole - index;
    return at < a->chirp ? FFT_(conj_if)(1, FFT_(chirp)(at, a->chirp)) : v;
  }
  if (index < a->x_count) {
    uint32_t mirrored = (a->flags & FFT_HALF_IN) && 2 * index > a->x_count;
    if (mirrored) at = a->x_count - index;
    v.re = x[at * a->x_stride];
    if (!(a->flags & FFT_REAL_IN)) v.im = x[at * a->x_stride + 1];
    if ((a->flags & FFT_HALF_IN) && (at == 0 || 2 * at == a->x_count)) v.im = 0;
    v = FFT_(conj_if)(mirrored, v);
    v = FFT_(conj_if)(a->flags & FFT_READ_CONJ, v);
    if (a->flags & FFT_CHIRP_IN) v = FFT_(times)(v, FFT_(chirp)(index, a->chirp));
    if (a->factor) v = FFT_(times)(v, ((const struct FFT_(pair) *)a->factor)[index]);
  }
  return FFT_(conj_if)(a->flags & FFT_LOAD_CONJ, v);
}
RDNA_SCALAR void FFT_(write)(const struct fft_args *a, FFT_T *out, uint32_t column, uint32_t k, struct FFT_(pair) v) {
  uint32_t index = column * a->out_column + k * a->out_step;
  if (index >= a->out_count) return;
  v = FFT_(conj_if)(a->flags & FFT_STORE_CONJ, v);
  if (a->twiddles) v = FFT_(times)(v, FFT_(turn)(column * k, a->whole));
  if (a->flags & FFT_CHIRP_OUT) v = FFT_(times)(v, FFT_(chirp)(index, a->chirp));
  v.re *= (FFT_T)a->scale, v.im *= (FFT_T)a->scale;
  v = FFT_(conj_if)(a->flags & FFT_WRITE_CONJ, v);
  out[index * a->out_stride] = v.re;
  if (!(a->flags & FFT_REAL_OUT)) out[index * a->out_stride + 1] = v.im;
}

#undef FFT_T
#undef FFT_
#undef FFT_FMA
#undef FFT_DOUBLE
