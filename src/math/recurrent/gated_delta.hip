/* The gated delta rule; see gated_delta_kernels.h. */
#include "math/recurrent/gated_delta_kernels.h"

#include "kernel/arguments.h"
#include "kernel/prelude.h"

static constexpr uint32_t lanes = GATED_DELTA_LANES;
static constexpr int32_t gates_at_once = 32; /* tokens whose gates the lanes of a wave compute together; even */

RDNA_DEVICE int64_t offset_of(const struct gated_delta_strides &at, int64_t token, uint32_t head, uint32_t repeat) {
  return token * at.token + head * at.head + repeat * at.repeat;
}

RDNA_DEVICE float4 fma_f32x4(float4 a, float4 b, float4 c) {
  return float4{fma_f32(a.x, b.x, c.x), fma_f32(a.y, b.y, c.y), fma_f32(a.z, b.z, c.z), fma_f32(a.w, b.w, c.w)};
}
/* The sum of v over the lanes of a row; all of them get it. */
RDNA_DEVICE float row_sum(float4 v) {
  float sum = (v.x + v.y) + (v.z + v.w);
#pragma unroll
  for (uint32_t mask = 1; mask < lanes; mask *= 2) sum += wave_shuffle_xor_f32(sum, mask);
  return sum;
}

/* A lane's share of a vector of d_k: vectors |lane|, |lane| + 8, .. of four. Unless |whole|, those past d_k are zeros.
 */
template <int parts, bool whole>
struct share {
  float4 v[parts];
  /* |mine|: where the lane's first vector is in memory, |left| how many values there are from it on. */
  RDNA_MEMBER void load(const float *mine, uint32_t left) {
#pragma unroll
    for (int i = 0; i < parts; i++) {
      const uint32_t at = i * lanes * 4;
      if (whole || at < left) {
        v[i] = load_global<float4>(mine + at);
      } else {
        v[i] = float4{0, 0, 0, 0};
      }
    }
  }
  RDNA_MEMBER void store(float *mine, uint32_t left) const {
#pragma unroll
    for (int i = 0; i < parts; i++) {
      const uint32_t at = i * lanes * 4;
      if (whole || at < left) store_global(mine + at, v[i]);
    }
  }
  RDNA_MEMBER float dot(const share &o) const {
    float4 sum = v[0] * o.v[0];
#pragma unroll
    for (int i = 1; i < parts; i++) sum = fma_f32x4(v[i], o.v[i], sum);
    return row_sum(sum);
  }
  /* this = decay * this + by * o */
  RDNA_MEMBER void decay_and_add(float decay, float by, const share &o) {
    float4 by4 = {by, by, by, by};
#pragma unroll
    for (int i = 0; i < parts; i++) v[i] = fma_f32x4(by4, o.v[i], decay * v[i]);
  }
};

/* What one token brings. */
template <int parts, int rows, bool whole>
struct token {
  share<parts, whole> k, q;
  float v[rows];
};

/* Where a thread stands: the head of its group, its lane within a row, its rows. */
struct place {
  uint32_t head, repeat, lane, first_row;
  uint32_t first_key, left; /* its first vector of keys, and the values from there to d_k, 0 if it is past that */
};

/* Row |i| of the thread. Neighbouring lanes' rows are neighbours in memory. */
RDNA_DEVICE uint32_t row_of(const place &p, int i) { return p.first_row + i * (GATED_DELTA_THREADS / lanes); }

template <int parts, int rows, bool whole>
RDNA_DEVICE token<parts, rows, whole> load_token(const gated_delta_args &a, const place &p, int64_t t) {
  token<parts, rows, whole> now;
  now.k.load(a.k + offset_of(a.k_at, t, p.head, 0) + p.first_key, p.left);
  now.q.load(a.q + offset_of(a.q_at, t, p.head, 0) + p.first_key, p.left);
  const float *v = a.v + offset_of(a.v_at, t, p.head, p.repeat);
#pragma unroll
  for (int i = 0; i < rows; i++) now.v[i] = row_of(p, i) < (uint32_t)a.d_v ? *global(v + row_of(p, i)) : 0.0f;
  return now;
}

/* (decay, beta) of token |t|. */
RDNA_DEVICE float2 load_gates(const gated_delta_args &a, const place &p, int64_t t) {
  float x = a.a[offset_of(a.a_at, t, p.head, p.repeat)] + a.dt[offset_of(a.dt_at, 0, p.head, p.repeat)];
  float rate = a.rate[offset_of(a.rate_at, 0, p.head, p.repeat)];
  return float2{scalar_exp(rate * scalar_softplus(x)), scalar_sigmoid(a.b[offset_of(a.b_at, t, p.head, p.repeat)])};
}

/* Lane i of a row's lanes writes |result| for row i of the thread. */
template <int rows>
RDNA_DEVICE void write_rows(const gated_delta_args &a, const place &p, int64_t t, float result) {
  uint32_t row = row_of(p, (int)p.lane);
  if (p.lane < rows && row < (uint32_t)a.d_v) a.out[offset_of(a.out_at, t, p.head, p.repeat) + row] = result;
}

/* One step. Both sums over a row are made of S as it was, so that they do not wait for one another: with
 * S' = decay S + d k'^T the answer S' q' is decay S q' + d (k'.q'). */
template <int parts, int rows, bool whole>
RDNA_DEVICE void step(const gated_delta_args &a, const place &p, int64_t t, const token<parts, rows, whole> &now,
                      float decay, float beta, share<parts, whole> *s) {
  float k_scale = fast_rsqrt(now.k.dot(now.k) + a.epsilon);
  float q_scale = a.scale * fast_rsqrt(now.q.dot(now.q) + a.epsilon);
  float kq = now.k.dot(now.q) * k_scale * q_scale;
  float result = 0; /* of the row that this lane writes */
#pragma unroll
  for (int i = 0; i < rows; i++) {
    float answer = decay * (s[i].dot(now.k) * k_scale), delta = beta * (now.v[i] - answer);
    float of_row = fma_f32(delta, kq, decay * (s[i].dot(now.q) * q_scale));
    if (p.lane == (uint32_t)i) result = of_row;
    s[i].decay_and_add(decay, delta * k_scale, now.k);
  }
  write_rows<rows>(a, p, t, result);
}

/* Two tokens a turn, so that each has registers of its own: the next one is in flight without a copy. */
template <int parts, int rows, bool whole>
RDNA_DEVICE void gated_delta(const gated_delta_args &args) {
  constexpr uint32_t slice = GATED_DELTA_SLICE(rows);
  uint32_t slices = ((uint32_t)args.d_v + slice - 1) / slice, head = group_id_x() / slices;
  place p = {head / (uint32_t)args.repeats, head % (uint32_t)args.repeats,
             thread_id() % lanes,           group_id_x() % slices * slice + thread_id() / lanes,
             thread_id() % lanes * 4,       0};
  p.left = (uint32_t)args.d_k - min_u32(p.first_key, (uint32_t)args.d_k);
  struct sequence sequence = sequence_at(&args.sequences, group_id_y());
  if (sequence.begin >= sequence.end) return;
  if (sequence.slot < 0) {
    for (int64_t t = sequence.begin; t < sequence.end; t++) write_rows<rows>(args, p, t, 0);
    return;
  }
  uint32_t heads = (uint32_t)(args.k_heads * args.repeats);
  float *state = args.state + (sequence.slot * heads + head) * (int64_t)args.d_v * args.d_k + p.first_key;
  share<parts, whole> s[rows];
#pragma unroll
  for (int i = 0; i < rows; i++) {
    s[i] = {};
    if (row_of(p, i) < (uint32_t)args.d_v) {
      s[i].load(state + (int64_t)row_of(p, i) * args.d_k, p.left);
    }
  }
  token<parts, rows, whole> even = load_token<parts, rows, whole>(args, p, sequence.begin), odd;
  float2 gates = {};
  for (int64_t t = sequence.begin; t < sequence.end; t += 2) {
    const gated_delta_args &a = arguments_again_wide(args);
    uint32_t turn = (uint32_t)(t - sequence.begin) % gates_at_once;
    bool two = t + 1 < sequence.end;
    if (two) odd = load_token<parts, rows, whole>(a, p, t + 1);
    if (turn == 0) {
      int64_t of_lane = t + lane_id() % gates_at_once, last = sequence.end - 1;
      gates = load_gates(a, p, of_lane < last ? of_lane : last);
    }
    step<parts, rows, whole>(a, p, t, even, wave_shuffle_f32(gates.x, turn), wave_shuffle_f32(gates.y, turn), s);
    if (!two) break;
    if (t + 2 < sequence.end) even = load_token<parts, rows, whole>(a, p, t + 2);
    turn++;
    step<parts, rows, whole>(a, p, t + 1, odd, wave_shuffle_f32(gates.x, turn), wave_shuffle_f32(gates.y, turn), s);
  }
#pragma unroll
  for (int i = 0; i < rows; i++) {
    if (row_of(p, i) < (uint32_t)args.d_v) {
      s[i].store(state + (int64_t)row_of(p, i) * args.d_k, p.left);
    }
  }
}

RDNA_KERNEL(64) gated_delta_d128(struct gated_delta_args a) { gated_delta<4, GATED_DELTA_ROWS_128, true>(a); }
RDNA_KERNEL(64) gated_delta_any(struct gated_delta_args a) { gated_delta<8, GATED_DELTA_ROWS_ANY, false>(a); }
