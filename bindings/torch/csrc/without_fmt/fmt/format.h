// Kineto's headers write numbers with fmt, whose own headers PyTorch ships only since 2.8: as much of it as they use,
// one value for "{}". Functions of theirs that want more are compiled in PyTorch and never here.
#pragma once

#include <sstream>
#include <string>

namespace fmt {

template <class... Values>
std::string format(const char *, const Values &...values) {
  std::ostringstream text;
  (text << ... << values);
  return text.str();
}

}  // namespace fmt
