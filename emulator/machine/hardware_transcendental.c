// The tables and the longer functions of hardware_math.h. The numbers are facts about the hardware, named there.
#include "machine/hardware_math.h"

#include <math.h>
#include <string.h>

// A row for each interval: value, slope, curvature and the change of the curvature, in units that the functions know.
const struct emu_cubic emu__hw_rcp_rows[32] = {
    {67108864, 2097138, 65462, 1925}, {65075262, 1971966, 59693, 1705}, {63161283, 1857674, 54582, 1516},
    {61356675, 1753039, 50039, 1352}, {59652323, 1657001, 45986, 1210}, {58040098, 1568644, 42359, 1086},
    {56512727, 1487171, 39104, 977},  {55063683, 1411884, 36174, 882},  {53687091, 1342172, 33529, 798},
    {52377649, 1277499, 31136, 724},  {51130563, 1217390, 28966, 658},  {49941480, 1161426, 26992, 599},
    {48806446, 1109234, 25194, 547},  {47721858, 1060483, 23552, 501},  {46684427, 1014876, 22050, 459},
    {45691141, 972149, 20673, 421},   {44739242, 932065, 19408, 388},   {43826196, 894410, 18244, 357},
    {42949672, 858991, 17171, 330},   {42107522, 825636, 16181, 305},   {41297762, 794186, 15266, 282},
    {40518559, 764500, 14418, 262},   {39768215, 736447, 13632, 243},   {39045157, 709911, 12902, 226},
    {38347922, 684783, 12223, 210},   {37675151, 660966, 11591, 196},   {37025580, 638371, 11002, 183},
    {36398027, 616915, 10452, 171},   {35791394, 596522, 9938, 160},    {35204649, 577124, 9458, 150},
    {34636833, 558658, 9007, 140},    {34087042, 541063, 8585, 131},
};
const struct emu_cubic emu__hw_rsq_rows[64] = {
    {67108864, 1048572, 24555, 606}, {66084241, 1001273, 22738, 545}, {65105161, 957426, 21104, 491},
    {64168347, 916688, 19629, 445},  {63270843, 878759, 18295, 403},  {62409975, 843376, 17084, 367},
    {61583317, 810305, 15983, 335},  {60788660, 779340, 14978, 306},  {60023992, 750298, 14060, 280},
    {59287474, 723016, 13219, 257},  {58577418, 697349, 12446, 237},  {57892279, 673165, 11735, 218},
    {57230631, 650347, 11080, 201},  {56591163, 628789, 10475, 186},  {55972661, 608397, 9915, 173},
    {55374006, 589084, 9396, 160},   {54794158, 570771, 8914, 149},   {54232151, 553388, 8467, 139},
    {53687091, 536870, 8050, 129},   {53158141, 521157, 7661, 121},   {52644524, 506196, 7298, 113},
    {52145512, 491938, 6959, 105},   {51660427, 478336, 6641, 99},    {51188632, 465350, 6343, 93},
    {50729532, 452941, 6064, 87},    {50282567, 441074, 5802, 82},    {49847212, 429717, 5555, 77},
    {49422973, 418838, 5322, 73},    {49009384, 408411, 5103, 68},    {48606008, 398409, 4897, 65},
    {48212431, 388809, 4702, 61},    {47828262, 379589, 4517, 58},    {47453132, 741452, 17363, 428},
    {46728614, 708007, 16078, 385},  {46036300, 677002, 14922, 347},  {45373873, 648196, 13880, 314},
    {44739242, 621376, 12936, 285},  {44130517, 596356, 12080, 259},  {43545981, 572972, 11301, 236},
    {42984073, 551076, 10591, 216},  {42443372, 530541, 9942, 198},   {41922574, 511250, 9347, 182},
    {41420490, 493100, 8801, 167},   {40936023, 475999, 8298, 154},   {40468167, 459864, 7835, 142},
    {40015995, 444621, 7407, 132},   {39578648, 430202, 7011, 122},   {39155335, 416545, 6644, 113},
    {38745320, 403596, 6303, 105},   {38347922, 391304, 5987, 98},    {37962506, 379624, 5692, 91},
    {37588482, 368514, 5417, 85},    {37225300, 357935, 5160, 80},    {36872445, 347852, 4920, 74},
    {36529438, 338235, 4696, 70},    {36195829, 329052, 4485, 65},    {35871196, 320278, 4288, 61},
    {35555144, 311887, 4102, 58},    {35247302, 303855, 3928, 54},    {34947319, 296163, 3763, 51},
    {34654868, 288790, 3609, 48},    {34369638, 281718, 3462, 45},    {34091337, 274930, 3325, 43},
    {33819688, 268410, 3194, 41},
};
const struct emu_cubic emu__hw_sqrt_rows[32] = {
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
const struct emu_cubic emu__hw_exp_rows[32] = {
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
const struct emu_cubic_log emu__hw_log_rows[33] = {
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

// ---- V_LOG

// |log2| next to one, in terms of the distance to it; the first rows are for the nearest.
const struct emu_cubic_log emu__hw_log_above_rows[3] = {
    {1, 48408812, 12102094, 7996204, 8257536},
    {385, 48408744, 12097614, 7795547, 8196096},
    {5713, 48408288, 12084310, 7533868, 7961344},
};
const struct emu_cubic_log emu__hw_log_below_rows[2] = {
    {1, 48408812, 12101979, 2035248, 61440},
    {-799, 48408884, 12097323, 2088428, 0},
};

static uint64_t cut_to_25(uint64_t v) { return v >> 25 ? v & ~UINT64_C(1) : v; }

// magnitude / 2^places as a float, rounded down or, with `up`, up.
static uint32_t pack(uint64_t magnitude, int places, bool negative, bool up) {
  int top = 63 - __builtin_clzll(magnitude), shift = top - 23;
  uint64_t significand = shift < 0 ? magnitude << -shift : magnitude >> shift;
  if (up && shift > 0) significand += (significand << shift) != magnitude;
  // a carry out of the significand lands in the exponent
  return ((uint32_t)negative << 31) + ((uint32_t)(top - places + 126) << 23) + (uint32_t)significand;
}

// |log2 v| of a v next to one, whose distance from one is n: in units of 2^-23 above one, of 2^-24 below.
static uint32_t log_near_one(uint32_t n, bool below) {
  int digits = 32 - __builtin_clz(n), up = digits >= 15 ? 0 : (15 - digits + 3) / 4 * 4;
  if (up > 16) up = 16;
  uint64_t x = (uint64_t)n << up, square = x * x >> (12 + up);
  const struct emu_cubic_log *c =
      below ? &emu__hw_log_below_rows[n >> 17] : &emu__hw_log_above_rows[n >> 16 ? 1 + (n >> 17) : 0];
  int64_t value = c->c0 + (int64_t)(((uint64_t)c->c1 * x >> 15) << 3);
  uint64_t bend = (uint64_t)c->c3 * n + c->c4;
  if (below) {
    value += (int64_t)cut_to_25((c->c2 + (bend >> 22)) * square >> 23);
  } else {
    value -= (int64_t)cut_to_25((c->c2 - (bend >> 23)) * square >> 22);
  }
  return pack((uint64_t)value, (below ? 37 : 36) + up, below, true);
}

// log2 of 1.m in 2^-36.
static int64_t log_mantissa(uint32_t m) {
  const struct emu_cubic_log *c = &emu__hw_log_rows[m >> 17 == 3 ? 32 : m >> 18];
  uint64_t x = m & 0x3ffff, square = x * x >> 12;
  uint64_t inner = c->c2 - (((uint64_t)c->c3 * x + c->c4) >> 23);
  return ((int64_t)c->c0 << 6) + (int64_t)(((uint64_t)c->c1 * x >> 16) << 6) - (int64_t)cut_to_25(inner * square >> 22);
}

uint32_t emu__hw_log_f32(uint32_t bits, bool quiet) {
  uint32_t magnitude = bits & 0x7fffffff, m = bits & 0x7fffff;
  int exponent = (int)(magnitude >> 23) - 127;
  if (magnitude > 0x7f800000) return emu__hw_quiet(bits, quiet);
  if (magnitude < 0x800000) return 0xff800000;
  if (bits >> 31) return (uint32_t)EMU_HW_NAN;
  if (magnitude == 0x7f800000) return magnitude;
  if (bits == 0x3f800000) return 0;
  if (exponent == 0 && m < 0x40000) return log_near_one(m, false);
  if (exponent == -1 && m > 0x7c0000) return log_near_one(0x800000 - m, true);
  int64_t sum = exponent * (INT64_C(1) << 36) + log_mantissa(m);
  return sum < 0 ? pack((uint64_t)-sum, 36, true, true) : pack((uint64_t)sum, 36, false, false);
}

// ---- V_SIN, V_COS

// Coefficients on the sixteen intervals of the first octant (0 to 1/8 turn), in units of 2^-26; sine, then cosine. The
// curvature c2 + c3 x is negative everywhere.
static const struct {
  int32_t c0, c1, c2, c3;
} trig_rows[2][16] = {{{0, 3294200, 0, -1322},
                       {3292874, 3290232, -3968, -1320},
                       {6577818, 3278340, -7928, -1312},
                       {9846914, 3258548, -11864, -1304},
                       {13092288, 3230908, -15778, -1290},
                       {16306122, 3195480, -19650, -1274},
                       {19480674, 3152356, -23476, -1256},
                       {22608294, 3101636, -27246, -1234},
                       {25681450, 3043444, -30948, -1210},
                       {28692736, 2977924, -34576, -1182},
                       {31634898, 2905224, -38122, -1152},
                       {34500850, 2825532, -41576, -1118},
                       {37283686, 2739032, -44928, -1082},
                       {39976702, 2645928, -48176, -1042},
                       {42573412, 2546452, -51304, -1002},
                       {45067558, 2440844, -54310, -958}},
                      {{67108864, 0, -80872, 32},
                       {67028028, -161636, -80774, 98},
                       {66785716, -322884, -80482, 162},
                       {66382510, -483352, -79996, 226},
                       {65819384, -642664, -79318, 290},
                       {65097694, -800416, -78448, 352},
                       {64219178, -956248, -77390, 414},
                       {63185952, -1109776, -76144, 476},
                       {62000504, -1260628, -74716, 536},
                       {60665694, -1408448, -73104, 594},
                       {59184734, -1552872, -71320, 652},
                       {57561192, -1693552, -69364, 708},
                       {55798980, -1830152, -67242, 762},
                       {53902344, -1962348, -64956, 814},
                       {51875852, -2089812, -62514, 864},
                       {49724388, -2212244, -59922, 912}}};

static int digits_of(uint64_t v) { return v ? 64 - __builtin_clzll(v) : 0; }

// A tiny angle times 2 pi (13176789 / 2^21), rounded to nearest; its denormals as MODE says.
static uint32_t small_sine(uint32_t magnitude, unsigned denormals) {
  uint32_t field = magnitude >> 23;
  uint64_t product = (uint64_t)((magnitude & 0x7fffff) | (field ? 0x800000 : 0)) * 0xc90fd5;
  int top = digits_of(product) - 1, e = (int)(field ? field : 1) + top - 44;  // the result's exponent field
  if (e < 1) {
    uint32_t result = (uint32_t)emu__hw_even(product, 21);
    return result < 0x800000 && !(denormals & 2) ? 0 : result;
  }
  return ((uint32_t)(e - 1) << 23) +
         (uint32_t)(top > 23 ? emu__hw_even(product, (unsigned)top - 23) : product << (23 - top));
}

// The coordinate of the linear term, rounded to a multiple of 2^places, but never up to the next multiple of
// 2^(20 + places).
static uint64_t linear_coordinate(uint32_t x, int places, bool reflected) {
  uint32_t from = x - reflected, most = ((from >> (20 + places)) + 1) << 20;
  uint32_t rounded = (from + (1u << (places - 1))) >> places;
  return (uint64_t)(rounded < most ? rounded : most - 1) << places;
}

// -c2 - c3 x of an interval in units of 2^-33, from the top 18 bits of x. That of the cosine falls, and is formed from
// the interval's other end, with the one's complement of x.
static uint64_t bend(bool cosine, unsigned row, uint32_t x) {
  int64_t c2 = trig_rows[cosine][row].c2, c3 = trig_rows[cosine][row].c3, one = 1 << 24;
  int64_t value =
      cosine ? -(c2 + c3) * one + c3 * ((one - 1 - x) & ~INT64_C(63)) : -c2 * one - c3 * (x & ~UINT32_C(63));
  return emu__hw_even((uint64_t)value, 17);
}

// Sine in the first two intervals keeps more bits of its products; in the first one the angle is shifted up by a
// multiple of four bits, so that small angles keep their digits.
static uint32_t sine_near_zero(uint32_t x, unsigned row, bool reflected) {
  int digits = digits_of(x), more = row || digits >= 24 ? 0 : (24 - digits) / 4 * 4;
  int up = row || digits >= 25 ? 0 : (25 - digits) / 4 * 4;
  uint64_t from = row ? linear_coordinate(x, 2, reflected) : (uint64_t)x << up, high = (x - reflected) >> 7;
  if (!row && reflected && !(((uint64_t)x << more) & 0xfffff)) from--;
  int slope_places = row ? 30 : 32 + more, places = 34 + more, square_places = more > 10 ? 34 : 24 + more;
  uint64_t slope = (uint64_t)trig_rows[0][row].c1 * from >> (50 + up - slope_places);
  uint64_t square = high * high >> (34 - square_places);
  uint64_t curve = emu__hw_even(bend(false, row, x - reflected) * square, (unsigned)(33 + square_places - places));
  uint64_t value = ((uint64_t)trig_rows[0][row].c0 << (places - 26)) + (slope << (places - slope_places)) - curve;
  return value ? pack(value, places, false, false) : 0;
}

static uint32_t first_octant(uint32_t angle, bool cosine, bool reflected) {
  if (cosine && angle - reflected < 46592) return 0x3f800000;
  if (!cosine && !angle) return 0;
  unsigned row = (angle - reflected) >> 24;
  uint32_t x = angle - (row << 24);
  if (!cosine && row < 2) return sine_near_zero(x, row, reflected);
  int64_t c0 = trig_rows[cosine][row].c0, c1 = trig_rows[cosine][row].c1;
  int64_t product = c1 * (int64_t)linear_coordinate(x, 4, reflected);
  uint64_t size = (uint64_t)(product < 0 ? -product : product), high = (x - reflected) >> 7;
  unsigned lost = size >> 45 ? 22 : 21;
  int64_t slope = (int64_t)(emu__hw_even(size, lost) << (lost - 21)) * (product < 0 ? -1 : 1);
  // rounded to 24 bits, halves down, then up to the grid of the sum
  uint64_t square_product = bend(cosine, row, x - reflected) * (high * high >> 10);
  uint64_t half = UINT64_C(1) << (square_product >> 47 ? 23 : 22), grid = UINT64_C(1) << 29;
  int64_t curve = square_product <= half ? 0 : (int64_t)((square_product - half + grid - 1) / grid);
  return pack((uint64_t)(c0 * 8 + slope - 2 * curve), 29, false, false);
}

uint32_t emu__hw_trig_f32(uint32_t bits, bool cosine, unsigned denormals, bool quiet) {
  uint32_t magnitude = bits & 0x7fffffff, sign = bits & 0x80000000;
  if (magnitude > 0x7f800000) return emu__hw_quiet(bits, quiet);
  if (magnitude == 0x7f800000) return (uint32_t)EMU_HW_NAN;
  if (!magnitude || (magnitude < 0x800000 && !(denormals & 1))) return cosine ? 0x3f800000 : sign;
  if (!cosine && magnitude < 0x39c00000) return sign | small_sine(magnitude, denormals);
  int exponent = (int)(magnitude >> 23) - 127, shift = exponent + 8;
  if (exponent >= 23) return cosine ? 0x3f800000 : 0;
  uint64_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  uint32_t turn = (uint32_t)(shift >= 0 ? mantissa << shift : shift > -64 ? mantissa >> -shift : 0) & 0x7fffffff;
  unsigned quadrant = turn >> 29;
  uint32_t angle = turn & 0x1fffffff;
  bool reflected = angle >> 28;
  if (reflected) angle = 0x20000000 - angle;
  uint32_t result = first_octant(angle, cosine ^ (quadrant & 1) ^ reflected, reflected);
  bool negative = (quadrant >> 1) ^ (cosine & quadrant & 1) ^ (!cosine && sign);
  return result ? result | (uint32_t)negative << 31 : 0;
}

// ---- halves

static double double_of(uint32_t half) {
  uint32_t field = half >> 10 & 31, low = half & 0x3ff;
  double value = ldexp(field ? low | 0x400 : low, (int)(field ? field : 1) - 25);
  return half & 0x8000 ? -value : value;
}

// The nearest half, ties to even; inf from beyond.
static uint32_t half_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  if (exponent > 15) return sign | 0x7c00;
  if (exponent < -25) return sign;
  uint64_t significand = (bits & 0xfffffffffffff) | UINT64_C(1) << 52;
  int least = exponent < -14 ? -14 : exponent;
  return sign + ((uint32_t)(least + 14) << 10) + (uint32_t)emu__hw_even(significand, (unsigned)(42 + least - exponent));
}

static uint32_t float_bits(uint32_t half) {
  float f = (float)double_of(half);
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return (half & 0x7c00) == 0x7c00 ? (half & 0x8000) << 16 | 0x7f800000 | (half & 0x3ff) << 13 : bits;
}

static uint32_t through_float(enum emu_hw_half function, uint32_t half) {
  uint32_t from = float_bits(half), to;
  switch (function) {
    case EMU_HW_RCP:
      to = emu__hw_rcp_f32(from, true);
      break;
    case EMU_HW_RSQ:
      to = emu__hw_rsq_f32(from, true);
      break;
    case EMU_HW_SQRT:
      to = emu__hw_sqrt_f32(from, true);
      break;
    default:
      to = emu__hw_trig_f32(from, function == EMU_HW_COS, 3, true);
      break;
  }
  if ((to & 0x7fffffff) > 0x7f800000) return 0xfe00;
  float f;
  memcpy(&f, &to, 4);
  return half_of((double)f);
}

uint32_t emu__hw_half(enum emu_hw_half function, uint32_t half, unsigned denormals, bool overflow_to_max, bool quiet) {
  half &= 0xffff;
  uint32_t magnitude = half & 0x7fff, negative = half >> 15, result;
  if (magnitude > 0x7c00) return half | (quiet ? 0x200 : 0);
  if (magnitude < 0x400 && !(denormals & 1)) {
    half &= 0x8000;
    magnitude = 0;
  }
  if (function == EMU_HW_LOG) {
    if (magnitude && negative) return 0xfe00;
    result = !magnitude ? 0xfc00 : magnitude == 0x7c00 ? 0x7c00 : half_of(log2(double_of(half)));
  } else if (function == EMU_HW_EXP) {
    double x = double_of(half);
    result = magnitude == 0x7c00 ? (negative ? 0 : 0x7c00) : half_of(exp2(x < -32 ? -32 : x > 32 ? 32 : x));
  } else {
    result = through_float(function, half);
  }
  if (overflow_to_max && (result & 0x7fff) == 0x7c00 && magnitude < 0x7c00) result--;
  if (!(denormals & 2) && !(result & 0x7c00)) result &= 0x8000;
  return result;
}
