#include "exporter/profile/sampler/profile_builder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>

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

constexpr std::string_view kUnknownPython = "pyperf_unknown";

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

ProfileBuilder::ProfileBuilder(Symbolizer& symbolizer, const KernelSymbols* kernel, unsigned rate)
    : symbolizer_(symbolizer), kernel_(kernel), rate_(rate) {}

std::uint32_t ProfileBuilder::frame(Growing& growing, Frame frame) {
  const auto [known, is_new] = growing.frames.try_emplace(
      std::move(frame), static_cast<std::uint32_t>(growing.profile.frames.size()));
  if (is_new) {
    growing.profile.frames.push_back(known->first);
  }
  return known->second;
}

std::uint32_t ProfileBuilder::user_frame(Growing& growing, pid_t pid, std::uint64_t address) {
  const auto known = growing.names.find(address);
  if (known != growing.names.end()) {
    return known->second;
  }
  SymbolName name = symbolizer_.name(pid, address);
  const std::uint32_t index =
      frame(growing, {.name = std::move(name.function),
                      .module = std::move(name.module),
                      .kind = name.jit ? FrameKind::kJit : FrameKind::kNative});
  growing.names.emplace(address, index);
  return index;
}

Frame ProfileBuilder::kernel_frame(std::uint64_t address) const {
  const auto name = kernel_ == nullptr ? std::nullopt : kernel_->find(address);
  return {.name = std::string(name.value_or("[kernel]")),
          .module = "[kernel]",
          .kind = FrameKind::kKernel};
}

std::uint32_t ProfileBuilder::python_frame(Growing& growing,
                                           const Sample& sample,
                                           const PythonCode& code) {
  const auto known = growing.functions.find(code);
  if (known != growing.functions.end()) {
    return known->second;
  }
  const PythonFunction* const function =
      symbolizer_.python_function(sample.pid, sample.python_process->layout, code);
  Frame named{.name = std::string(kUnknownPython), .module = {}, .kind = FrameKind::kPython};
  if (function != nullptr) {
    const std::string_view file =
        std::string_view(function->file).substr(function->file.rfind('/') + 1);
    named.name = fmt::format("{} {}", file, function->name);
    named.module = function->file;
  }
  const std::uint32_t index = frame(growing, std::move(named));
  growing.functions.emplace(code, index);
  return index;
}

/// Replaces the user frames, with which the stack ends, by the frames of a Python program.
void ProfileBuilder::add_python(Growing& growing,
                                const Sample& sample,
                                std::vector<std::uint32_t>& stack) {
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(sample.user.size());
  std::vector<NativePart> native;
  for (const std::uint32_t index : std::span(first, stack.end())) {
    auto [role, is_new] = growing.roles.try_emplace(index, NativeRole::kCode);
    if (is_new) {
      const Frame& shown = growing.profile.frames[index];
      role->second = native_role(shown.name, shown.module, sample.python_process->module);
    }
    native.push_back({.frame = index, .role = role->second});
  }
  std::vector<PythonPart> python;
  std::vector<std::uint64_t> entries;
  for (const PythonSample& part : sample.python) {
    python.push_back({.frame = python_frame(growing, sample, part.code), .entry = part.entry});
    if (part.stack != 0) {
      entries.push_back(part.stack);
    }
  }
  const bool marked = mark_evals(native, sample.stack, entries);
  const auto merged = merge_python(
      native, python, !marked && sample.end == STACK_END_OUTERMOST && !sample.python_cut);
  stack.erase(first, stack.end());
  stack.insert(stack.end(), merged.begin(), merged.end());
}

void ProfileBuilder::add(const Sample& sample) {
  Growing& growing = processes_[{.unit = sample.unit, .pid = sample.pid}];
  if (growing.image != sample.image) {
    // The same addresses are other functions now.
    growing.image = sample.image;
    growing.names.clear();
    growing.functions.clear();
    growing.roles.clear();
    symbolizer_.enter(sample.pid, {sample.image.started, sample.image.execs});
  }
  std::vector<std::uint32_t> stack;
  stack.reserve(sample.kernel.size() + sample.user.size() + 1);
  bool leaf = true;
  for (const std::uint64_t address : sample.kernel) {
    stack.push_back(frame(growing, kernel_frame(leaf ? address : address - 1)));
    leaf = false;
  }
  leaf = true;
  for (const std::uint64_t address : sample.user) {
    // A return address belongs to the call before it.
    stack.push_back(user_frame(growing, sample.pid, leaf ? address : address - 1));
    leaf = false;
  }
  if (sample.python_process != nullptr && !sample.python.empty()) {
    add_python(growing, sample, stack);
  }
  stack.push_back(frame(
      growing, {.name = std::string(sample.comm), .module = {}, .kind = FrameKind::kProcess}));
  const auto [known, is_new] = growing.stacks.try_emplace(stack, growing.profile.stacks.size());
  if (is_new) {
    growing.profile.stacks.push_back({.frames = std::move(stack), .samples = 0});
  }
  ++growing.profile.stacks[known->second].samples;
}

std::map<ProfileOwner, Profile> ProfileBuilder::take() {
  std::map<ProfileOwner, Profile> profiles;
  for (auto& [owner, growing] : processes_) {
    growing.profile.rate = rate_;
    profiles.emplace(owner, std::move(growing.profile));
  }
  processes_.clear();
  return profiles;
}

Profile ProfileBuilder::take_all() {
  Growing all;
  for (auto& [owner, profile] : take()) {
    for (Stack& stack : profile.stacks) {
      for (std::uint32_t& index : stack.frames) {
        index = frame(all, profile.frames[index]);
      }
      const auto [known, is_new] = all.stacks.try_emplace(stack.frames, all.profile.stacks.size());
      if (is_new) {
        all.profile.stacks.push_back({.frames = stack.frames, .samples = 0});
      }
      all.profile.stacks[known->second].samples += stack.samples;
    }
  }
  all.profile.rate = rate_;
  return std::move(all.profile);
}

}  // namespace ceems::exporter::profile
