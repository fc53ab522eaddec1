#include "exporter/profile/sampler/python_stack.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace ceems::exporter::profile {
namespace {

constexpr std::string_view kEval = "_PyEval_EvalFrameDefault";

// CPython's functions that call a callable, under the names of 3.6 to 3.15.
constexpr std::array<std::string_view, 27> kCallPrefixes{
    "PyEval_Eval",
    "_PyEval_",
    "PyObject_Call",
    "_PyObject_Call",
    "_PyObject_FastCall",
    "_PyObject_MakeTpCall",
    "_PyObject_Vectorcall",
    "PyObject_Vectorcall",
    "PyVectorcall_",
    "_PyVectorcall_",
    "_PyFunction_",
    "_PyCFunction_",
    "PyCFunction_",
    "_PyMethodDef_",
    "_PyGen_",
    "_Py_VectorCall",
    "_Py_BuiltinCall",
    "cfunction_",
    "method_vectorcall",
    "method_call",
    "slot_tp_",
    "function_code_fastcall",
    "fast_function",
    "function_call",
    "call_function",
    "do_call_core",
    "gen_send_ex",
};

constexpr std::array<std::string_view, 8> kStarts{
    "_start",  "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3",
    "__clone", "__clone3",
};

/// Without what compilers and linkers add: "f.cold", "f.constprop.0", "f@@GLIBC_2.34".
std::string_view plain(std::string_view function) {
  return function.substr(0, function.find_first_of(".@", 1));
}

/// The parts of Python's stack that one call of the interpreter runs, the leaf first.
std::vector<std::span<const PythonPart>> groups_of(std::span<const PythonPart> python) {
  std::vector<std::span<const PythonPart>> groups;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < python.size(); ++i) {
    if (python[i].entry || i + 1 == python.size()) {
      groups.push_back(python.subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
  }
  return groups;
}

}  // namespace

NativeRole native_role(std::string_view function,
                       std::string_view module,
                       std::string_view interpreter) {
  const std::string_view name = plain(function);
  if (std::ranges::find(kStarts, name) != kStarts.end() || name.starts_with("__libc_start_")) {
    return NativeRole::kStart;
  }
  if (module != interpreter) {
    return function == module ? NativeRole::kUnnamed : NativeRole::kCode;
  }
  if (name == kEval) {
    return NativeRole::kEval;
  }
  const bool calls = std::ranges::any_of(
      kCallPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
  return calls || function == module ? NativeRole::kCall : NativeRole::kInterpreter;
}

bool mark_evals(std::span<NativePart> native,
                std::span<const std::uint64_t> stack,
                std::span<const std::uint64_t> entries) {
  std::vector<std::size_t> found;
  for (const std::uint64_t entry : entries) {
    // The stack grows down: a frame reaches from its stack pointer to that of its caller.
    const auto caller = std::ranges::upper_bound(stack, entry);
    if (caller == stack.begin() || caller == stack.end()) {
      break;
    }
    found.push_back(static_cast<std::size_t>(caller - stack.begin()) - 1);
  }
  if (found.empty() || stack.size() != native.size()) {
    return false;
  }
  for (NativePart& part : native) {
    part.role = part.role == NativeRole::kEval ? NativeRole::kCall : part.role;
  }
  for (const std::size_t index : found) {
    native[index].role = NativeRole::kEval;
  }
  return true;
}

std::vector<std::uint32_t> merge_python(std::span<const NativePart> native,
                                        std::span<const PythonPart> python,
                                        bool from_outermost) {
  std::vector<std::uint32_t> merged;
  merged.reserve(native.size() + python.size());
  if (python.empty()) {
    std::ranges::transform(native, std::back_inserter(merged), &NativePart::frame);
    return merged;
  }
  const auto groups = groups_of(python);
  const auto evals =
      static_cast<std::size_t>(std::ranges::count(native, NativeRole::kEval, &NativePart::role));
  // Without a recognised one, the innermost frame that could be one stands for all.
  const auto stand_in =
      evals > 0 ? native.end() : std::ranges::find(native, NativeRole::kCall, &NativePart::role);
  std::size_t next = 0;  // of the groups
  const auto add_groups = [&](std::size_t end) {
    for (; next < std::min(end, groups.size()); ++next) {
      std::ranges::transform(groups[next], std::back_inserter(merged), &PythonPart::frame);
    }
  };
  std::size_t seen = 0;  // of the evals
  for (auto part = native.begin(); part != native.end(); ++part) {
    if (part == stand_in) {
      add_groups(groups.size());
    } else if (part->role == NativeRole::kEval) {
      ++seen;
      // From the outermost ones on, each group has its eval. One that has just been called, or is
      // about to return, has no frame; one without a symbol was not recognised.
      const std::size_t end =
          from_outermost ? groups.size() - std::min(groups.size(), evals - seen) : seen;
      add_groups(end);
    } else if (next >= groups.size()) {
      if (part->role == NativeRole::kCode) {
        merged.push_back(part->frame);
      }
    } else if (part->role != NativeRole::kCall) {
      merged.push_back(part->frame);
    }
  }
  add_groups(groups.size());
  return merged;
}

}  // namespace ceems::exporter::profile
