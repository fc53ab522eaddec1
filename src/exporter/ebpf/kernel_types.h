#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/ebpf/layout.h"

struct btf;
namespace ceems::exporter::ebpf {

/// The type information of a kernel (BTF, https://docs.kernel.org/bpf/btf.html): which functions it
/// has, their arguments and results. Functions that were inlined everywhere are missing.
class KernelTypes {
 public:
  /// The types of the running kernel. kNotFound: it was built without CONFIG_DEBUG_INFO_BTF.
  static Result<KernelTypes> running();
  /// Those in a file, for tests.
  static Result<KernelTypes> read(const std::string& path);
  /// Takes over `types`.
  explicit KernelTypes(::btf* types);

  /// Nothing if there is no function of this name, or one of several static functions with that
  /// name that differ, or with more arguments than a program can read.
  [[nodiscard]] std::optional<ebpf_prototype> function(const std::string& name) const;

  /// The index in css_set::subsys of a v1 controller, e.g. "cpuacct". "cpu,cpuacct" counts as its
  /// first part. Nothing if the kernel does not have it.
  [[nodiscard]] std::optional<unsigned> controller(std::string_view name) const;

 private:
  std::unique_ptr<::btf, void (*)(::btf*)> types_;
};

/// Which counters a hook belongs to.
enum class HookPart { kFiles, kNetwork };

/// A kernel function on which programs are hung.
struct Hook {
  ebpf_hook id;
  std::string_view function;
  HookPart part;
  std::string_view loses;  ///< what is not counted if the hook is missing
  bool latency = false;    ///< needed only for latencies
  bool spare = false;      ///< needed only if another hook is not reached
};

/// All hooks, in the order of ebpf_hook. Static data.
std::span<const Hook> all_hooks();

/// Fills in the prototypes of the hooks of one part. Returns the hooks that this kernel does not
/// have, without spare ones.
std::vector<const Hook*> fit_hooks(const KernelTypes& types,
                                   HookPart part,
                                   ebpf_settings& settings);

}  // namespace ceems::exporter::ebpf
