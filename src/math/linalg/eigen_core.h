/* Eigenvalues of one matrix, by the threads of a group or by one of the host: balanced by powers of two (Parlett and
 * Reinsch, 1969), brought to Hessenberg form by reflections, then to Schur form by steps of two shifts at once
 * (Francis, 1961; Golub and Van Loan, 7.4 and 7.5), whose triangle gives the vectors:
 *
 *     x x x x x      x x x x x      x x x x x     a block of two on the diagonal holds two
 *     x x x x x      x x x x x        x x x x     values that are conjugate
 *     x x x x x        x x x x        x x x x
 *     x x x x x          x x x            x x
 *     x x x x x            x x              x
 *
 * Included once for each type, and on the GPU once for each memory that h lies in, with
 *
 *     EIGEN_T, EIGEN(name)      the type; the name with a suffix of its own
 *     EIGEN_FUNCTION            what a function is declared as
 *     EIGEN_ROOT(v)             the square root
 *     EIGEN_FUSED(a, b, c)      a b + c, rounded once: of complex numbers' products, as gcc 12 fuses pairs of sums and
 *                               differences also where it was told not to
 *     EIGEN_UNIT, EIGEN_BIG     the distance of 1 from the next number; a size whose square and whose product with
 *                               1 / EIGEN_UNIT are in range
 *     EIGEN_STRETCH             what balancing multiplies by at most, in each of 8 passes
 *     EIGEN_ME, EIGEN_THREADS   this thread, and how many there are
 *     EIGEN_MEET, EIGEN_MEET_ALL  threads see what others wrote to h; and to other memory
 *
 * Each thread decides from the same values, so that no decision needs to be told to others. Rows of z belong to one
 * thread each until all is done. */

#define EIGEN_EACH(i, first, end) for (int32_t i = (int32_t)(first) + EIGEN_ME; i < (int32_t)(end); i += EIGEN_THREADS)
#define EIGEN_H(i, j) m->h[(i) * m->row + (j)]
#define EIGEN_Z(i, j) m->z[(i) + (j) * m->n]

typedef struct EIGEN(matrix) {
  EIGEN_T *h, *z; /* z by columns, or NULL */
  int32_t row, n; /* values from one row of h to the next */
} EIGEN(matrix);

EIGEN_FUNCTION EIGEN_T EIGEN(size)(EIGEN_T v) { return v < 0 ? -v : v; }

/* The power of two that makes the sums |over| of a column, times it, and |beside| of a row, divided by it, alike. */
EIGEN_FUNCTION EIGEN_T EIGEN(stretch)(EIGEN_T over, EIGEN_T beside) {
  EIGEN_T f = 1;
  if (over == 0 || beside == 0) return f;
  while (f < (EIGEN_T)EIGEN_STRETCH && over * (2 * f) + beside / (2 * f) < over * f + beside / f) f *= 2;
  while (f * (EIGEN_T)EIGEN_STRETCH > 1 && over * (f / 2) + beside / (f / 2) < over * f + beside / f) f /= 2;
  return over * f + beside / f < (EIGEN_T)0.95 * (over + beside) ? f : 1;
}

/* Makes columns as long as rows. Returns the largest sum of a column's magnitudes. */
EIGEN_FUNCTION EIGEN_T EIGEN(balance)(const EIGEN(matrix) * m) {
  int32_t n = m->n;
  EIGEN_T most = 0;
  for (int32_t pass = 0, changed = 1; pass < 8 && changed; pass++) {
    most = 0, changed = 0;
    for (int32_t i = 0; i < n; i++) {
      EIGEN_T over = 0, beside = 0;
      for (int32_t k = 0; k < n; k++) {
        if (k != i) over += EIGEN(size)(EIGEN_H(k, i)), beside += EIGEN(size)(EIGEN_H(i, k));
      }
      EIGEN_T f = EIGEN(stretch)(over, beside), whole = over + EIGEN(size)(EIGEN_H(i, i));
      if (whole > most) most = whole;
      if (f == 1) continue;
      changed = 1;
      EIGEN_MEET();
      EIGEN_EACH(k, 0, n) {
        if (k != i) EIGEN_H(k, i) *= f, EIGEN_H(i, k) /= f;
        if (k == i && m->z) EIGEN_Z(i, i) *= f;
      }
      EIGEN_MEET();
    }
  }
  return most;
}

/* Column k below the diagonal becomes (beta, 0, ..., 0) by the reflection 1 - tau v v^T, from both sides. */
EIGEN_FUNCTION void EIGEN(reflect)(const EIGEN(matrix) * m, int32_t k) {
  int32_t n = m->n, top = k + 1;
  EIGEN_T size = 0, square = 0;
  for (int32_t i = top + 1; i < n; i++) size += EIGEN(size)(EIGEN_H(i, k));
  if (size == 0) return;
  size += EIGEN(size)(EIGEN_H(top, k));
  EIGEN_T alpha = EIGEN_H(top, k) / size;
  for (int32_t i = top; i < n; i++) {
    EIGEN_T v = EIGEN_H(i, k) / size;
    square += v * v;
  }
  EIGEN_T beta = alpha > 0 ? -EIGEN_ROOT(square) : EIGEN_ROOT(square), below = alpha - beta,
          tau = (beta - alpha) / beta;
  EIGEN_MEET();
  EIGEN_EACH(i, top, n) EIGEN_H(i, k) = i == top ? 1 : EIGEN_H(i, k) / size / below;
  EIGEN_MEET();
  EIGEN_EACH(j, top, n) {
    EIGEN_T sum = 0;
    for (int32_t i = top; i < n; i++) sum += EIGEN_H(i, k) * EIGEN_H(i, j);
    sum *= tau;
    for (int32_t i = top; i < n; i++) EIGEN_H(i, j) -= EIGEN_H(i, k) * sum;
  }
  EIGEN_MEET();
  EIGEN_EACH(i, 0, n) {
    EIGEN_T sum = 0;
    for (int32_t j = top; j < n; j++) sum += EIGEN_H(i, j) * EIGEN_H(j, k);
    sum *= tau;
    for (int32_t j = top; j < n; j++) EIGEN_H(i, j) -= EIGEN_H(j, k) * sum;
    if (!m->z) continue;
    sum = 0;
    for (int32_t j = top; j < n; j++) sum += EIGEN_Z(i, j) * EIGEN_H(j, k);
    sum *= tau;
    for (int32_t j = top; j < n; j++) EIGEN_Z(i, j) -= EIGEN_H(j, k) * sum;
  }
  EIGEN_MEET();
  EIGEN_EACH(i, top, n) EIGEN_H(i, k) = i == top ? beta * size : 0;
  EIGEN_MEET();
}

/* Rows and columns k and k + 1 are turned by the rotation (c, s), which makes the value below the diagonal 0. */
EIGEN_FUNCTION void EIGEN(turn)(const EIGEN(matrix) * m, int32_t k, EIGEN_T c, EIGEN_T s) {
  EIGEN_MEET();
  EIGEN_EACH(j, k, m->z ? m->n : k + 2) {
    EIGEN_T x = EIGEN_H(k, j), y = EIGEN_H(k + 1, j);
    EIGEN_H(k, j) = EIGEN_FUSED(s, y, c * x), EIGEN_H(k + 1, j) = EIGEN_FUSED(-s, x, c * y);
  }
  EIGEN_MEET();
  EIGEN_EACH(i, m->z ? 0 : k, k + 2) {
    EIGEN_T x = EIGEN_H(i, k), y = EIGEN_H(i, k + 1);
    EIGEN_H(i, k) = i == k + 1 ? 0 : EIGEN_FUSED(s, y, c * x), EIGEN_H(i, k + 1) = EIGEN_FUSED(-s, x, c * y);
  }
  EIGEN_EACH(i, 0, m->z ? m->n : 0) {
    EIGEN_T x = EIGEN_Z(i, k), y = EIGEN_Z(i, k + 1);
    EIGEN_Z(i, k) = EIGEN_FUSED(s, y, c * x), EIGEN_Z(i, k + 1) = EIGEN_FUSED(-s, x, c * y);
  }
  EIGEN_MEET();
}

/* Of the block of two at k: half the difference of its diagonal and what it is divided by, and the square of half the
 * distance of its values, divided by the square of that. */
EIGEN_FUNCTION EIGEN_T EIGEN(distance)(const EIGEN(matrix) * m, int32_t k, EIGEN_T *half, EIGEN_T *size) {
  EIGEN_T p = (EIGEN_H(k, k) - EIGEN_H(k + 1, k + 1)) / 2, b = EIGEN_H(k, k + 1), c = EIGEN_H(k + 1, k);
  EIGEN_T s = EIGEN(size)(p);
  if (EIGEN(size)(b) > s) s = EIGEN(size)(b);
  if (EIGEN(size)(c) > s) s = EIGEN(size)(c);
  *half = p / s, *size = s;
  return *half * *half + (b / s) * (c / s);
}

/* Makes the block of two at k triangular where its values are real. */
EIGEN_FUNCTION void EIGEN(split)(const EIGEN(matrix) * m, int32_t k) {
  EIGEN_T p, size, square = EIGEN(distance)(m, k, &p, &size);
  if (!(square >= 0)) return;
  EIGEN_T x = p < 0 ? p - EIGEN_ROOT(square) : p + EIGEN_ROOT(square), y = EIGEN_H(k + 1, k) / size;
  EIGEN_T length = EIGEN_ROOT(x * x + y * y);
  EIGEN(turn)(m, k, x / length, y / length);
}

/* A reflection of three rows and columns, whose first column is (x, y, z), and those after it that bring the matrix
 * back to Hessenberg form, in rows and columns |low| to |high|. */
EIGEN_FUNCTION void EIGEN(chase)(const EIGEN(matrix) * m, int32_t low, int32_t high, EIGEN_T x, EIGEN_T y, EIGEN_T z) {
  EIGEN_MEET(); /* all have read what they have decided from */
  for (int32_t k = low; k < high; k++) {
    bool three = k + 2 <= high;
    if (k > low) x = EIGEN_H(k, k - 1), y = EIGEN_H(k + 1, k - 1), z = three ? EIGEN_H(k + 2, k - 1) : 0;
    EIGEN_T size = EIGEN(size)(x) + EIGEN(size)(y) + EIGEN(size)(z);
    if (size == 0) continue;
    x /= size, y /= size, z /= size;
    EIGEN_T r = EIGEN_ROOT(x * x + y * y + z * z), beta = x > 0 ? -r : r, below = x - beta;
    EIGEN_T v = y / below, w = z / below, tau = (beta - x) / beta;
    EIGEN_EACH(j, k, m->z ? m->n : high + 1) {
      EIGEN_T sum = EIGEN_H(k, j) + v * EIGEN_H(k + 1, j);
      if (three) sum += w * EIGEN_H(k + 2, j);
      sum *= tau;
      EIGEN_H(k, j) -= sum, EIGEN_H(k + 1, j) -= v * sum;
      if (three) EIGEN_H(k + 2, j) -= w * sum;
    }
    EIGEN_MEET();
    EIGEN_EACH(i, m->z ? 0 : low, (k + 3 < high ? k + 3 : high) + 1) {
      EIGEN_T sum = EIGEN_H(i, k) + v * EIGEN_H(i, k + 1);
      if (three) sum += w * EIGEN_H(i, k + 2);
      sum *= tau;
      EIGEN_H(i, k) -= sum, EIGEN_H(i, k + 1) -= v * sum;
      if (three) EIGEN_H(i, k + 2) -= w * sum;
    }
    if (k > low && EIGEN_ME == 0) {
      EIGEN_H(k, k - 1) = beta * size, EIGEN_H(k + 1, k - 1) = 0;
      if (three) EIGEN_H(k + 2, k - 1) = 0;
    }
    EIGEN_EACH(i, 0, m->z ? m->n : 0) {
      EIGEN_T sum = EIGEN_Z(i, k) + v * EIGEN_Z(i, k + 1);
      if (three) sum += w * EIGEN_Z(i, k + 2);
      sum *= tau;
      EIGEN_Z(i, k) -= sum, EIGEN_Z(i, k + 1) -= v * sum;
      if (three) EIGEN_Z(i, k + 2) -= w * sum;
    }
    EIGEN_MEET();
  }
}

/* One step on rows and columns |low| to |high|, three or more: shifted by the values of the last block of two, or now
 * and then, so that no cycle goes on for ever, by others. */
EIGEN_FUNCTION void EIGEN(step)(const EIGEN(matrix) * m, int32_t low, int32_t high, bool other) {
  EIGEN_T a = EIGEN_H(high - 1, high - 1), b = EIGEN_H(high - 1, high), c = EIGEN_H(high, high - 1);
  EIGEN_T d = EIGEN_H(high, high), p = EIGEN_H(low, low), q = EIGEN_H(low + 1, low);
  if (other) {
    c = EIGEN(size)(c) + EIGEN(size)(EIGEN_H(high - 1, high - 2));
    b = (EIGEN_T)-0.4375 * c, a = d = d + (EIGEN_T)0.75 * c;
  }
  EIGEN_T s = EIGEN(size)(p - a) + EIGEN(size)(p - d) + EIGEN(size)(b) + EIGEN(size)(c) + EIGEN(size)(q);
  EIGEN_T x = (p - a) * ((p - d) / s) - b * (c / s) + EIGEN_H(low, low + 1) * (q / s);
  EIGEN_T y = q / s * (p + EIGEN_H(low + 1, low + 1) - a - d), z = q / s * EIGEN_H(low + 2, low + 1);
  EIGEN(chase)(m, low, high, x, y, z);
}

/* Hessenberg to Schur form. Returns how many rows at the top have not become it, mostly 0. */
EIGEN_FUNCTION int32_t EIGEN(schur)(const EIGEN(matrix) * m, EIGEN_T norm) {
  for (int32_t high = m->n - 1, tries = 0; high >= 0;) {
    int32_t low = high;
    for (; low > 0; low--) {
      EIGEN_T s = EIGEN(size)(EIGEN_H(low - 1, low - 1)) + EIGEN(size)(EIGEN_H(low, low));
      if (EIGEN(size)(EIGEN_H(low, low - 1)) <= (EIGEN_T)EIGEN_UNIT * (s == 0 ? norm : s)) break;
    }
    if (low > 0 && EIGEN_H(low, low - 1) != 0) {
      EIGEN_MEET();
      if (EIGEN_ME == 0) EIGEN_H(low, low - 1) = 0;
      EIGEN_MEET();
    }
    if (low + 1 < high) {
      if (tries == 60) return high + 1;
      EIGEN(step)(m, low, high, tries % 10 == 9);
      tries++;
    } else {
      if (low + 1 == high) EIGEN(split)(m, low);
      high = low - 1, tries = 0;
    }
  }
  return 0;
}

/* Of the value whose row is i, in Schur form: whether it and the next are conjugate, and the one of the two whose
 * imaginary part is positive. */
EIGEN_FUNCTION bool EIGEN(value)(const EIGEN(matrix) * m, int32_t i, EIGEN_T *real, EIGEN_T *imag) {
  bool two = i + 1 < m->n && EIGEN_H(i + 1, i) != 0;
  *real = EIGEN_H(i, i), *imag = 0;
  if (!two) return false;
  EIGEN_T p, size, square = EIGEN(distance)(m, i, &p, &size);
  *real = EIGEN_H(i + 1, i + 1) + p * size, *imag = square < 0 ? size * EIGEN_ROOT(-square) : 0;
  return true;
}

/* out = (a + i b) / (c + i d), of which what is smaller than |least| counts as that (Smith, 1962). */
EIGEN_FUNCTION void EIGEN(divide)(EIGEN_T a, EIGEN_T b, EIGEN_T c, EIGEN_T d, EIGEN_T least, EIGEN_T *out) {
  if (EIGEN(size)(c) + EIGEN(size)(d) < least) c = least, d = 0;
  if (EIGEN(size)(c) >= EIGEN(size)(d)) {
    EIGEN_T t = d / c, e = EIGEN_FUSED(d, t, c);
    out[0] = EIGEN_FUSED(b, t, a) / e, out[1] = EIGEN_FUSED(-a, t, b) / e;
  } else {
    EIGEN_T t = c / d, e = EIGEN_FUSED(c, t, d);
    out[0] = EIGEN_FUSED(a, t, b) / e, out[1] = EIGEN_FUSED(b, t, -a) / e;
  }
}

/* c less the product of a and b. */
EIGEN_FUNCTION void EIGEN(subtract)(const EIGEN_T *a, const EIGEN_T *b, EIGEN_T *c) {
  c[0] = EIGEN_FUSED(a[1], b[1], EIGEN_FUSED(-a[0], b[0], c[0]));
  c[1] = EIGEN_FUSED(-a[1], b[0], EIGEN_FUSED(-a[0], b[1], c[1]));
}

/* x (2, 2) becomes the solution of the block of two at i less (real + i imag): the larger of a column is divided by. */
EIGEN_FUNCTION void EIGEN(solve_two)(const EIGEN(matrix) * m, int32_t i, EIGEN_T real, EIGEN_T imag, EIGEN_T least,
                                     EIGEN_T *x) {
  EIGEN_T a = EIGEN_H(i, i) - real, b = EIGEN_H(i, i + 1), c = EIGEN_H(i + 1, i), d = EIGEN_H(i + 1, i + 1) - real;
  EIGEN_T f[2], top[2] = {x[0], x[1]}, low[2] = {x[2], x[3]};
  if (EIGEN(size)(a) + EIGEN(size)(imag) >= EIGEN(size)(c)) {
    EIGEN(divide)(c, 0, a, -imag, least, f);
    EIGEN(subtract)(f, top, low);
    EIGEN(divide)(low[0], low[1], EIGEN_FUSED(-f[0], b, d), EIGEN_FUSED(-f[1], b, -imag), least, x + 2);
    EIGEN(divide)(EIGEN_FUSED(-b, x[2], top[0]), EIGEN_FUSED(-b, x[3], top[1]), a, -imag, least, x);
  } else {
    EIGEN_T pivot[2] = {b, 0}, other[2] = {d, -imag};
    f[0] = a / c, f[1] = -imag / c;
    EIGEN(subtract)(f, low, top);
    EIGEN(subtract)(f, other, pivot);
    EIGEN(divide)(top[0], top[1], pivot[0], pivot[1], least, x + 2);
    EIGEN(subtract)(other, x + 2, low);
    x[0] = low[0] / c, x[1] = low[1] / c;
  }
}

/* x (n, 2): the vector of value j in the coordinates of the Schur form, by substitution from its own row upwards. Where
 * it would grow out of range (values that lie together have nearly one vector) what is known is made smaller. */
EIGEN_FUNCTION void EIGEN(solve)(const EIGEN(matrix) * m, int32_t j, EIGEN_T norm, EIGEN_T *x) {
  EIGEN_T real, imag, least = norm > 0 ? (EIGEN_T)EIGEN_UNIT * norm : 1;
  bool two = EIGEN(value)(m, j, &real, &imag);
  int32_t last = j + two;
  for (int32_t i = 0; i < 2 * m->n; i++) x[i] = 0;
  x[2 * last] = 1;
  if (two && EIGEN(size)(EIGEN_H(j, j + 1)) >= EIGEN(size)(EIGEN_H(j + 1, j))) {
    x[2 * j] = 1, x[2 * last] = (real - EIGEN_H(j, j)) / EIGEN_H(j, j + 1), x[2 * last + 1] = imag / EIGEN_H(j, j + 1);
  } else if (two) {
    x[2 * j] = (real - EIGEN_H(last, last)) / EIGEN_H(last, j), x[2 * j + 1] = imag / EIGEN_H(last, j);
  }
  for (int32_t i = j - 1; i >= 0; i--) {
    int32_t rows = 1 + (i > 0 && EIGEN_H(i, i - 1) != 0), top = i + 1 - rows;
    for (int32_t r = top; r <= i; r++) {
      EIGEN_T sum[2] = {0, 0};
      for (int32_t k = i + 1; k <= last; k++)
        sum[0] += EIGEN_H(r, k) * x[2 * k], sum[1] += EIGEN_H(r, k) * x[2 * k + 1];
      x[2 * r] = -sum[0], x[2 * r + 1] = -sum[1];
    }
    if (rows == 2) EIGEN(solve_two)(m, top, real, imag, least, x + 2 * top);
    if (rows == 1) EIGEN(divide)(x[2 * i], x[2 * i + 1], EIGEN_H(i, i) - real, -imag, least, x + 2 * i);
    EIGEN_T most = 0;
    for (int32_t k = 2 * top; k <= 2 * i + 1; k++) most = EIGEN(size)(x[k]) > most ? EIGEN(size)(x[k]) : most;
    for (int32_t k = 2 * top; k <= 2 * last + 1 && most > (EIGEN_T)EIGEN_BIG; k++) x[k] /= most;
    i = top;
  }
}

/* Row i of z times the vector x. */
EIGEN_FUNCTION void EIGEN(multiply)(const EIGEN(matrix) * m, int32_t i, const EIGEN_T *x, EIGEN_T *out) {
  out[0] = out[1] = 0;
  for (int32_t k = 0; k < m->n; k++) out[0] += EIGEN_Z(i, k) * x[2 * k], out[1] += EIGEN_Z(i, k) * x[2 * k + 1];
}

/* v (n, 2) becomes of length 1, with a real part alone where it is the largest, and |other| its conjugate. */
EIGEN_FUNCTION void EIGEN(normalize)(int32_t n, EIGEN_T *v, EIGEN_T *other) {
  EIGEN_T most = 0, sum = 0, longest = -1;
  int32_t at = 0;
  for (int32_t i = 0; i < 2 * n; i++) most = EIGEN(size)(v[i]) > most ? EIGEN(size)(v[i]) : most;
  for (int32_t i = 0; i < n; i++) {
    EIGEN_T a = v[2 * i] / most, b = v[2 * i + 1] / most, square = a * a + b * b;
    sum += square;
    if (square > longest) longest = square, at = i;
  }
  EIGEN_T length = EIGEN_ROOT(sum), c = 1, s = 0;
  if (other) {
    EIGEN_T a = v[2 * at] / most, b = v[2 * at + 1] / most;
    c = a / EIGEN_ROOT(longest), s = b / EIGEN_ROOT(longest);
  }
  for (int32_t i = 0; i < n; i++) {
    EIGEN_T a = v[2 * i] / most / length, b = v[2 * i + 1] / most / length;
    v[2 * i] = EIGEN_FUSED(s, b, c * a), v[2 * i + 1] = other && i == at ? 0 : EIGEN_FUSED(-s, a, c * b);
    if (other) other[2 * i] = v[2 * i], other[2 * i + 1] = -v[2 * i + 1];
  }
}

/* Brings h to Schur form, with z, if it is there, the vectors of which the form is one in h's place. Returns how many
 * values were not found; *out_norm is the largest sum of a balanced column. */
EIGEN_FUNCTION int32_t EIGEN(reduce)(const EIGEN(matrix) * m, EIGEN_T *out_norm) {
  int32_t n = m->n;
  EIGEN_EACH(i, 0, m->z ? n : 0) {
    for (int32_t j = 0; j < n; j++) EIGEN_Z(i, j) = (EIGEN_T)(i == j);
  }
  EIGEN_MEET();
  *out_norm = EIGEN(balance)(m);
  EIGEN_MEET();
  for (int32_t k = 0; k + 2 < n; k++) EIGEN(reflect)(m, k);
  return EIGEN(schur)(m, *out_norm);
}

/* What is asked for, of a Schur form: see eigen_kernels.h. |scale| is what h was divided by. */
EIGEN_FUNCTION void EIGEN(give)(const EIGEN(matrix) * m, EIGEN_T norm, EIGEN_T scale, EIGEN_T *x, EIGEN_T *values,
                                EIGEN_T *vectors) {
  int32_t n = m->n;
  EIGEN_EACH(i, 0, n) {
    EIGEN_T real, imag, sign = 1;
    int32_t first = i - (i > 0 && EIGEN_H(i, i - 1) != 0);
    EIGEN(value)(m, first, &real, &imag);
    if (first < i) sign = -1;
    values[2 * i] = real * scale, values[2 * i + 1] = sign * imag * scale;
    if (m->z && first == i) EIGEN(solve)(m, i, norm, x + 2 * i * n);
  }
  if (!m->z) return;
  EIGEN_MEET_ALL();
  EIGEN_EACH(i, 0, n) {
    for (int32_t j = 0; j < n; j++) {
      if (j == 0 || EIGEN_H(j, j - 1) == 0) EIGEN(multiply)(m, i, x + 2 * j * n, vectors + 2 * (j * n + i));
    }
  }
  EIGEN_MEET_ALL();
  EIGEN_EACH(j, 0, n) {
    EIGEN_T *v = vectors + 2 * j * n;
    if (j == 0 || EIGEN_H(j, j - 1) == 0)
      EIGEN(normalize)(n, v, j + 1 < n && EIGEN_H(j + 1, j) != 0 ? v + 2 * n : (EIGEN_T *)0);
  }
}

#undef EIGEN_EACH
#undef EIGEN_H
#undef EIGEN_Z
#undef EIGEN
#undef EIGEN_T
#undef EIGEN_ROOT
#undef EIGEN_FUSED
#undef EIGEN_UNIT
#undef EIGEN_BIG
#undef EIGEN_STRETCH
#undef EIGEN_THREADS
#undef EIGEN_MEET
