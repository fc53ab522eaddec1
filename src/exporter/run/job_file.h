#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "exporter/run/directory.h"

namespace ceems::exporter::run {

/// Writes a job file (`.cjf`, docs/user-mode.md): zstd frames, each with the header line and lines
/// of Prometheus text with millisecond stamps. Frames are independent, so the file can be read up
/// to the last frame whenever its writer is killed, and several files can be joined by `cat`.
class JobFileWriter {
 public:
  static constexpr std::size_t kMaxFrame = std::size_t{1} << 20U;  ///< bytes before compression

  /// Makes the file, which must not exist. `header` is a JSON object.
  static Result<JobFileWriter> create(const DataDirectory& directory,
                                      const std::string& name,
                                      std::string_view header);

  /// Appends lines, in frames of at most kMaxFrame. After an error a part may be written; the file
  /// is then cut back to its last whole frame, where that is possible.
  Result<> append(std::string_view lines);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  JobFileWriter(UniqueFd fd, std::string header) : fd_(std::move(fd)), header_(std::move(header)) {}
  Result<> append_frame(std::string_view lines);

  UniqueFd fd_;
  std::string header_;
  std::uint64_t bytes_ = 0;  // of whole frames
};

/// Passes each whole line of the file on, header lines included, up to the last byte that can be
/// read. Lines longer than 64 KiB are left out. kParse if the file is damaged in the middle: what
/// came before it has been passed on. A file that only ends early does not cause an error.
Result<> read_job_file(const DataDirectory& directory,
                       const std::string& name,
                       const std::function<void(std::string_view line)>& use);

/// The same for the bytes of a file that come in pieces: `next` replaces its argument by the next
/// piece, and by nothing at the end.
Result<> read_frames(const std::function<Result<>(std::string& piece)>& next,
                     const std::function<void(std::string_view line)>& use);

/// "#ceems-jobfile 1 ", with which header lines begin.
extern const std::string_view kJobFileMark;

}  // namespace ceems::exporter::run
