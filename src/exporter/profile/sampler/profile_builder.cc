#include "exporter/profile/sampler/profile_builder.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ceems::exporter::profile {
namespace {

constexpr std::string_view kUnknownPython = "pyperf_unknown";

}  // namespace

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
