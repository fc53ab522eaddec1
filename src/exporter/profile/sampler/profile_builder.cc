#include "exporter/profile/sampler/profile_builder.h"

#include <string_view>
#include <utility>

namespace ceems::exporter::profile {

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

void ProfileBuilder::add(const Sample& sample) {
  Growing& growing = processes_[{.unit = sample.unit, .pid = sample.pid}];
  if (growing.image != sample.image) {
    // The same addresses are other functions now.
    growing.image = sample.image;
    growing.names.clear();
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
