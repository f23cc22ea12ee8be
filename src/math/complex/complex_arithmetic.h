/* Sums, products and quotients of pairs of COMPLEX_T, float or double, for the host and the GPU: included once for
 * each. COMPLEX_(name) adds the type's suffix. Products are rounded before they are added, so that the imaginary part
 * of x conj(x) is 0. */

struct COMPLEX_(pair) {
  COMPLEX_T re, im;
};

RDNA_SCALAR struct COMPLEX_(pair) COMPLEX_(add)(struct COMPLEX_(pair) a, struct COMPLEX_(pair) b) {
  return (struct COMPLEX_(pair)){a.re + b.re, a.im + b.im};
}
RDNA_SCALAR struct COMPLEX_(pair) COMPLEX_(sub)(struct COMPLEX_(pair) a, struct COMPLEX_(pair) b) {
  return (struct COMPLEX_(pair)){a.re - b.re, a.im - b.im};
}
RDNA_SCALAR struct COMPLEX_(pair) COMPLEX_(mul)(struct COMPLEX_(pair) a, struct COMPLEX_(pair) b) {
  return (struct COMPLEX_(pair)){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* By the ratio of b's smaller part to the larger, so that squares do not overflow (Smith, "Algorithm 116: Complex
 * division", 1962). */
RDNA_SCALAR struct COMPLEX_(pair) COMPLEX_(div)(struct COMPLEX_(pair) a, struct COMPLEX_(pair) b) {
  COMPLEX_T re = b.re < 0 ? -b.re : b.re, im = b.im < 0 ? -b.im : b.im;
  if (re == 0 && im == 0) return (struct COMPLEX_(pair)){a.re / re, a.im / re};
  if (re >= im) {
    COMPLEX_T ratio = b.im / b.re, whole = b.re + b.im * ratio;
    return (struct COMPLEX_(pair)){(a.re + a.im * ratio) / whole, (a.im - a.re * ratio) / whole};
  }
  COMPLEX_T ratio = b.re / b.im, whole = b.re * ratio + b.im;
  return (struct COMPLEX_(pair)){(a.re * ratio + a.im) / whole, (a.im * ratio - a.re) / whole};
}
/* Operations that have a kernel of their own change nothing. */
RDNA_SCALAR struct COMPLEX_(pair)
    COMPLEX_(zip)(uint32_t op, struct COMPLEX_(pair) a, struct COMPLEX_(pair) b, struct COMPLEX_(pair) p) {
  switch (op) {
    case RDNA_COMPLEX_ADD:
      return COMPLEX_(add)(a, b);
    case RDNA_COMPLEX_SUB:
      return COMPLEX_(sub)(a, b);
    case RDNA_COMPLEX_MUL:
      return COMPLEX_(mul)(a, b);
    case RDNA_COMPLEX_DIV:
      return COMPLEX_(div)(a, b);
    case RDNA_COMPLEX_ADD_SCALED:
      return COMPLEX_(add)(a, COMPLEX_(mul)(p, b));
    default:
      return a;
  }
}

/* A value of complex_blocks_args: its two rows. */
RDNA_SCALAR void COMPLEX_(block)(const struct complex_blocks_args *a, struct COMPLEX_(pair) x,
                                 struct COMPLEX_(pair) out[2]) {
  if (a->flags & COMPLEX_SCALE) {
    x = COMPLEX_(mul)((struct COMPLEX_(pair)){(COMPLEX_T)a->factor[0], (COMPLEX_T)a->factor[1]}, x);
  }
  if (a->flags & COMPLEX_CONJ) x.im = -x.im;
  out[0] = x;
  out[1] = a->flags & COMPLEX_NEGATE_LOW ? (struct COMPLEX_(pair)){x.im, -x.re} : (struct COMPLEX_(pair)){-x.im, x.re};
}

#undef COMPLEX_T
#undef COMPLEX_
