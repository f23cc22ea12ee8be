// The transcendental unit in fixed point: piecewise cubics of which the coefficients, and the places where products are
// cut or rounded, are such that every result is the one that hardware gives. Both were recovered from outputs of a
// gfx1201 by the rocjitsu project and published with ROCm/rocm-systems (emulation/rocjitsu); the digests over whole
// ranges of inputs that it recorded on gfx1100 agree for the logarithm. These are observations, not AMD's circuit.
#include "machine/transcendental_fixed.h"

#include <stdbool.h>

enum { INFINITE = 0x7f800000, QUIET = 0x00400000, SMALLEST_NORMAL = 0x00800000 };
#define INVALID 0xffc00000u

static uint64_t half_even(uint64_t value, unsigned shift) {
  uint64_t whole = value >> shift, rest = value & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
  return whole + (rest > half || (rest == half && (whole & 1)));
}
static uint64_t half_up(uint64_t value, unsigned shift) { return (value + (UINT64_C(1) << (shift - 1))) >> shift; }

// ---- 2^x: 32 segments of the fraction

static const uint32_t exp_segments[32][4] = {
    // constant 2^-28, linear 2^-28, quadratic 2^-35, cubic 2^-24
    {268435456, 5814541, 8060268, 29},   {274313427, 5941862, 8236765, 29},   {280320109, 6071972, 8417127, 30},
    {286458319, 6204931, 8601438, 31},   {292730941, 6340801, 8789785, 31},   {299140913, 6479647, 8982256, 32},
    {305691246, 6621533, 9178942, 33},   {312385013, 6766525, 9379934, 33},   {319225354, 6914693, 9585328, 34},
    {326215479, 7066105, 9795219, 35},   {333358667, 7220833, 10009707, 36},  {340658273, 7378948, 10228891, 36},
    {348117717, 7540526, 10452874, 37},  {355740503, 7705642, 10681762, 38},  {363530205, 7874374, 10915663, 39},
    {371490480, 8046800, 11154685, 40},  {379625062, 8223002, 11398940, 41},  {387937769, 8403062, 11648545, 42},
    {396432501, 8587066, 11903614, 42},  {405113242, 8775098, 12164270, 43},  {413984066, 8967247, 12430633, 44},
    {423049137, 9163605, 12702828, 45},  {432312707, 9364261, 12980984, 46},  {441779122, 9569312, 13265230, 47},
    {451452826, 9778853, 13555701, 48},  {461338356, 9992982, 13852532, 49},  {471440350, 10211799, 14155863, 50},
    {481763549, 10435409, 14465836, 52}, {492312797, 10663914, 14782597, 53}, {503093043, 10897424, 15106293, 54},
    {514109347, 11136046, 15437078, 55}, {525366876, 11379894, 15775106, 56},
};

// 2^f for 29 bits of fraction, with 36 of its own.
static uint64_t exp_fraction(uint32_t fraction) {
  const uint32_t *c = exp_segments[fraction >> 24];
  uint64_t t = fraction & 0xffffff, top = t >> 6, product = c[1] * t;
  uint64_t linear = (product + (product >> 47 ? 1u << 23 : 1u << 22)) >> 24;
  uint64_t inner = ((uint64_t)c[2] << 7) + c[3] * top, square = (top * top) >> 12;
  product = square * half_even(inner, 7);
  uint64_t quadratic = product >> 47 ? half_up(product, 24) << 1 : half_up(product, 23);
  return ((c[0] + linear) << 8) + quadratic;
}

uint32_t emu__exp2_bits(uint32_t input) {
  uint32_t magnitude = input & 0x7fffffff, field = magnitude >> 23;
  bool negative = input >> 31;
  if (magnitude > INFINITE) return input | QUIET;
  if (field < 103) return 0x3f800000;  // below 2^-24
  if (field >= 134) return negative ? 0 : INFINITE;
  uint64_t m = (magnitude & 0x7fffff) | SMALLEST_NORMAL, fixed = field >= 121 ? m << (field - 121) : m >> (121 - field);
  int whole = (int)(fixed >> 29);
  uint32_t fraction = fixed & 0x1fffffff;
  if (negative) whole = -whole - 1, fraction ^= 0x1fffffff;  // the complement, not the negative
  uint64_t r = half_even(exp_fraction(fraction), 13);
  int exponent = whole + 127 + (int)(r >> 24);
  if (exponent <= 0) return 0;
  if (exponent >= 255) return INFINITE;
  return (uint32_t)exponent << 23 | ((uint32_t)(r >> (r >> 24)) & 0x7fffff);
}

// ---- log2: 32 segments of the mantissa, the second of them in two halves; and five for what is close to 1

static const uint32_t log_segments[33][5] = {
    // constant 2^-30, linear 2^-46, quadratic 2^-24, cubic 2^-47, its carry
    {15, 12102179, 12095173, 7703430, 0},
    {47667825, 11735468, 11378345, 7196210, 7786496},
    {93912517, 11390291, 10714741, 6440064, 7413760},
    {138816594, 11064855, 10111507, 5910132, 7176192},
    {182455591, 10757500, 9557803, 5437300, 6864896},
    {224898847, 10466758, 9048378, 5014168, 6701056},
    {266210154, 10191316, 8578611, 4633666, 6881280},
    {306448312, 9930003, 8144494, 4290660, 6971392},
    {345667679, 9681753, 7742500, 3980348, 6138880},
    {383918558, 9445614, 7369567, 3699876, 6987776},
    {421247645, 9220718, 7022931, 3444856, 5824512},
    {457698312, 9006284, 6700175, 3212382, 6217728},
    {493310964, 8801596, 6399165, 3000264, 5619712},
    {528123258, 8606005, 6118007, 2807020, 5586944},
    {562170399, 8418918, 5854955, 2629240, 5513216},
    {595485263, 8239793, 5608532, 2466858, 5709824},
    {628098719, 8068131, 5377341, 2317504, 5332992},
    {660039693, 7903475, 5160150, 2179820, 5226496},
    {691335339, 7745406, 4955875, 2053444, 5193728},
    {722011229, 7593536, 4763477, 1936151, 5345280},
    {752091435, 7447506, 4582059, 1827318, 5513216},
    {781598650, 7306987, 4410807, 1726376, 5046272},
    {810554297, 7171673, 4248984, 1632887, 5227520},
    {838978616, 7041279, 4095937, 1547042, 5300224},
    {866890752, 6915542, 3950988, 1466372, 4939776},
    {894308853, 6794217, 3813578, 1390544, 4890624},
    {921250083, 6677075, 3683220, 1321584, 4857856},
    {947730761, 6563905, 3559471, 1255436, 4808704},
    {973766367, 6454506, 3441820, 1193876, 4784128},
    {999371610, 6348694, 3329908, 1137588, 4767744},
    {1024560488, 6246298, 3223482, 1083560, 4734976},
    {1049346329, 6147160, 3121894, 1032952, 4718592},
    {47667912, 11735350, 11363743, 6879954, 8077312},
};
static const int32_t log_above[3][5] = {  // n below 2^16, 2^17, 2^18
    {1, 48408812, 12102094, 7996204, 8257536},
    {385, 48408744, 12097614, 7795547, 8196096},
    {5713, 48408288, 12084310, 7533868, 7961344}};
static const int32_t log_below[2][5] = {{1, 48408812, 12101979, 2035248, 61440},
                                        {-799, 48408884, 12097323, 2088428, 0}};

static uint64_t keep_25(uint64_t value) { return value >> 25 ? value & ~UINT64_C(1) : value; }

// A fixed-point magnitude to a float: cut, or rounded away from zero.
static uint32_t to_float(bool negative, uint64_t magnitude, int fraction_bits, bool away) {
  int top = 63 - __builtin_clzll(magnitude), exponent = top - fraction_bits;
  uint64_t m = top > 23 ? magnitude >> (top - 23) : magnitude << (23 - top);
  if (away && top > 23 && m << (top - 23) != magnitude && ++m >> 24) m >>= 1, exponent++;
  return (uint32_t)negative << 31 | (uint32_t)(exponent + 127) << 23 | ((uint32_t)m & 0x7fffff);
}

// n: how far from 1, in units of 2^-23 above and 2^-24 below.
static uint32_t log_near_one(bool below, uint32_t n) {
  unsigned scale = 0;
  while (scale < 16 && n << scale < 1 << 14) scale += 4;
  const int32_t *c = below ? log_below[n >> 17] : log_above[n >> 16 ? 1 + (n >> 17 & 1) : 0];
  uint64_t s = (uint64_t)n << scale, linear = (uint64_t)c[1] * s >> 15 << 3, square = s * s >> (12 + scale);
  uint64_t cubic = (uint64_t)c[3] * n + (uint64_t)c[4];
  int64_t value = c[0] + (int64_t)linear;
  if (below) {
    value += (int64_t)keep_25(((uint64_t)c[2] + (cubic >> 22)) * square >> 23);
  } else {
    value -= (int64_t)keep_25(((uint64_t)c[2] - (cubic >> 23)) * square >> 22);
  }
  return to_float(below, (uint64_t)value, (below ? 37 : 36) + (int)scale, true);
}

uint32_t emu__log2_bits(uint32_t input) {
  uint32_t magnitude = input & 0x7fffffff, m = magnitude & 0x7fffff;
  if (magnitude > INFINITE) return input | QUIET;
  if (magnitude < SMALLEST_NORMAL) return 0xff800000;
  if (input >> 31) return INVALID;
  if (magnitude == INFINITE) return INFINITE;
  int exponent = (int)(magnitude >> 23) - 127;
  if (exponent == 0 && m < 1 << 18) return m ? log_near_one(false, m) : 0;
  if (exponent == -1 && m > 0x7c0000) return log_near_one(true, 0x800000 - m);
  const uint32_t *c = log_segments[m >> 17 == 3 ? 32 : m >> 18];
  uint64_t d = m & 0x3ffff, square = d * d >> 12, inner = c[2] - (((uint64_t)c[3] * d + c[4]) >> 23);
  int64_t sum = (int64_t)(((uint64_t)c[0] << 6) + ((uint64_t)c[1] * d >> 16 << 6) - keep_25(inner * square >> 22));
  sum += exponent * (INT64_C(1) << 36);
  return to_float(sum < 0, sum < 0 ? (uint64_t)-sum : (uint64_t)sum, 36, sum < 0);
}

// ---- square root: 16 segments of the mantissa for each parity of the exponent

static const uint32_t sqrt_segments[32][4] = {
    // in units of the last place: constant 1/4, linear 1/8, then 1/8, 1/4
    {33554432, 2097143, 32722, 474}, {34587116, 2034529, 29882, 409}, {35589849, 1977208, 27431, 356},
    {36565094, 1924474, 25297, 312}, {37514995, 1875745, 23425, 275}, {38441431, 1830541, 21774, 244},
    {39346059, 1788454, 20308, 218}, {40230350, 1749143, 18999, 195}, {41095618, 1712315, 17825, 176},
    {41943040, 1677719, 16767, 159}, {42773675, 1645139, 15810, 145}, {43588485, 1614387, 14940, 132},
    {44388341, 1585296, 14147, 120}, {45174036, 1557724, 13422, 110}, {45946298, 1531542, 12757, 102},
    {46705792, 1506637, 12145, 94},  {47453132, 2965809, 46276, 670}, {48913569, 2877259, 42260, 578},
    {50331648, 2796194, 38793, 503}, {51710852, 2721617, 35775, 441}, {53054215, 2652705, 33129, 389},
    {54364393, 2588776, 30793, 346}, {55643730, 2529256, 28720, 308}, {56894307, 2473662, 26869, 277},
    {58117981, 2421579, 25208, 249}, {59316416, 2372654, 23712, 225}, {60491112, 2326579, 22358, 205},
    {61643427, 2283088, 21129, 186}, {62774594, 2241948, 20008, 171}, {63885735, 2202954, 18982, 156},
    {64977878, 2165927, 18042, 144}, {66051965, 2130707, 17176, 133},
};

uint32_t emu__sqrt_bits(uint32_t input) {
  uint32_t magnitude = input & 0x7fffffff;
  if (magnitude > INFINITE) return input | QUIET;
  if (magnitude < SMALLEST_NORMAL) return input & 0x80000000;
  if (input >> 31) return INVALID;
  if (magnitude == INFINITE) return INFINITE;
  int exponent = (int)(magnitude >> 23) - 127, odd = exponent & 1;
  uint32_t index = (uint32_t)odd << 23 | (magnitude & 0x7fffff);
  const uint32_t *c = sqrt_segments[index >> 19];
  uint64_t t = index & 0x7ffff, product = c[1] * t;
  uint64_t linear = (product + (product >> 40 ? 0x10000 : 0x8000)) >> 17;
  uint64_t inner = (((uint64_t)c[2] << 19) - c[3] * (2 * t + 1) + 0x400) >> 11, square = (t >> 2) * (t >> 2) >> 10;
  product = inner * square;
  uint64_t quadratic = product >> 47 ? half_up(product, 24) << 1 : half_even(product, 23);
  uint64_t m = half_even(((uint64_t)c[0] << 10) + (linear << 7) - quadratic, 12);
  return (uint32_t)((exponent - odd) / 2 + 127) << 23 | ((uint32_t)m & 0x7fffff);
}
