#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "object/object.h"

// EF_AMDGPU_MACH, the low byte of e_flags. Generic ones name what every member of the family executes.
static const struct {
  uint8_t mach;
  const char *name;
} machs[] = {
    {0x2c, "gfx900"},          {0x2d, "gfx902"},          {0x2e, "gfx904"},        {0x2f, "gfx906"},
    {0x30, "gfx908"},          {0x31, "gfx909"},          {0x32, "gfx90c"},        {0x33, "gfx1010"},
    {0x34, "gfx1011"},         {0x35, "gfx1012"},         {0x36, "gfx1030"},       {0x37, "gfx1031"},
    {0x38, "gfx1032"},         {0x39, "gfx1033"},         {0x3d, "gfx1035"},       {0x3e, "gfx1034"},
    {0x3f, "gfx90a"},          {0x40, "gfx940"},          {0x41, "gfx1100"},       {0x42, "gfx1013"},
    {0x43, "gfx1150"},         {0x44, "gfx1103"},         {0x45, "gfx1036"},       {0x46, "gfx1101"},
    {0x47, "gfx1102"},         {0x48, "gfx1200"},         {0x4a, "gfx1151"},       {0x4b, "gfx941"},
    {0x4c, "gfx942"},          {0x4f, "gfx950"},          {0x4e, "gfx1201"},       {0x51, "gfx9-generic"},
    {0x52, "gfx10-1-generic"}, {0x53, "gfx10-3-generic"}, {0x54, "gfx11-generic"}, {0x55, "gfx1152"},
    {0x59, "gfx12-generic"},   {0x58, "gfx1153"},         {0x20, "gfx600"},        {0x28, "gfx801"},
    {0x2a, "gfx803"},
};

const char *emu_mach_name(uint32_t e_flags) {
  for (size_t i = 0; i < sizeof machs / sizeof *machs; i++)
    if (machs[i].mach == (e_flags & 0xff)) return machs[i].name;
  return NULL;
}

bool emu_mach_runs_on(uint32_t e_flags, const char *arch) {
  const char *name = emu_mach_name(e_flags);
  if (!name) return false;
  if (strcmp(name, arch) == 0) return true;
  if (strcmp(name, "gfx10-1-generic") == 0) return strncmp(arch, "gfx101", 6) == 0;
  if (strcmp(name, "gfx10-3-generic") == 0) return strncmp(arch, "gfx103", 6) == 0;
  if (strcmp(name, "gfx11-generic") == 0) return strncmp(arch, "gfx11", 5) == 0;
  if (strcmp(name, "gfx12-generic") == 0) return strncmp(arch, "gfx12", 5) == 0;
  return false;
}

enum emu_object_status emu_object_fail(struct emu_object_error *error, enum emu_object_status status,
                                       const char *format, ...) {
  if (error) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
  }
  return status;
}
