#pragma once

#include <string>

#include "exporter/ebpf/layout.h"

namespace ceems::exporter::ebpf {

/// How a mount is called on the page.
struct MountLabel {
  std::string text;
  std::string type;  ///< of the file system: "lustre", "nfs4", "ext4", ...

  friend auto operator<=>(const MountLabel&, const MountLabel&) = default;
};

/// The name of a mount in its own mount namespace. By default it is made of the last name of each
/// mount point, as the reference does: /lustre/scratch on the root file system is "/scratch"; at
/// most 64 bytes. With `full_path` it is the whole path. Bytes that are not printable are escaped.
MountLabel mount_label(const ebpf_place& place, bool full_path);

}  // namespace ceems::exporter::ebpf
