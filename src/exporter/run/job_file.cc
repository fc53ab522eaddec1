#include "exporter/run/job_file.h"

#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "os/file.h"

namespace ceems::exporter::run {
namespace {

constexpr int kLevel = 3;
constexpr std::size_t kMaxLine = std::size_t{64} << 10U;
constexpr std::size_t kPiece = std::size_t{256} << 10U;
constexpr int kMaxWindowLog = 23;  // 8 MiB; frames of ours need 1 MiB

/// Cuts text into lines. An unfinished one is kept for the next piece.
class Lines {
 public:
  explicit Lines(const std::function<void(std::string_view line)>& use) : use_(use) {}
  void add(std::string_view text) {
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      keep(text.substr(0, end));
      if (!too_long_) {
        use_(kept_);
      }
      forget();
      text.remove_prefix(end + 1);
    }
    keep(text);
  }
  /// What follows belongs to another frame.
  void forget() {
    kept_.clear();
    too_long_ = false;
  }

 private:
  void keep(std::string_view text) {
    too_long_ = too_long_ || kept_.size() + text.size() > kMaxLine;
    if (!too_long_) {
      kept_ += text;
    }
  }
  const std::function<void(std::string_view line)>& use_;
  std::string kept_;
  bool too_long_ = false;
};

}  // namespace

const std::string_view kJobFileMark = "#ceems-jobfile 1 ";

Result<JobFileWriter> JobFileWriter::create(const DataDirectory& directory,
                                            const std::string& name,
                                            std::string_view header) {
  CEEMS_TRY(fd, directory.create_file(name));
  return JobFileWriter(std::move(fd), fmt::format("{}{}\n", kJobFileMark, header));
}

Result<> JobFileWriter::append(std::string_view lines) {
  while (!lines.empty()) {
    std::size_t size = std::min(lines.size(), kMaxFrame - std::min(header_.size(), kMaxFrame / 2));
    if (size < lines.size()) {
      const auto end = lines.rfind('\n', size - 1);
      size = end == std::string_view::npos ? size : end + 1;
    }
    CEEMS_TRY(append_frame(lines.substr(0, size)));
    lines.remove_prefix(size);
  }
  return {};
}

Result<> JobFileWriter::append_frame(std::string_view lines) {
  const std::string text = header_ + std::string(lines);
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(::ZSTD_createCCtx(),
                                                                        ::ZSTD_freeCCtx);
  if (context == nullptr) {
    return fail(ErrorCode::kInternal, "zstd: out of memory");
  }
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const std::size_t size =
      ::ZSTD_compress2(context.get(), packed.data(), packed.size(), text.data(), text.size());
  if (::ZSTD_isError(size) != 0) {
    return fail(ErrorCode::kInternal, "zstd: {}", ::ZSTD_getErrorName(size));
  }
  packed.resize(size);
  if (auto written = os::write_all(fd_.get(), packed); !written) {
    const auto whole = static_cast<off_t>(bytes_);
    if (::ftruncate(fd_.get(), whole) == 0) {
      ::lseek(fd_.get(), whole, SEEK_SET);
    }
    return written;
  }
  bytes_ += packed.size();
  return {};
}

Result<> read_frames(const std::function<Result<>(std::string& piece)>& next,
                     const std::function<void(std::string_view line)>& use) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(::ZSTD_createDCtx(),
                                                                        ::ZSTD_freeDCtx);
  if (context == nullptr) {
    return fail(ErrorCode::kInternal, "zstd: out of memory");
  }
  ::ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  Lines lines(use);
  std::string piece;
  std::string text(kPiece, '\0');
  while (true) {
    CEEMS_TRY(next(piece));
    if (piece.empty()) {
      return {};
    }
    ZSTD_inBuffer in{.src = piece.data(), .size = piece.size(), .pos = 0};
    bool full = true;  // there may be more text than fits
    while (in.pos < in.size || full) {
      ZSTD_outBuffer out{.dst = text.data(), .size = text.size(), .pos = 0};
      const std::size_t left = ::ZSTD_decompressStream(context.get(), &out, &in);
      if (::ZSTD_isError(left) != 0) {
        return fail(ErrorCode::kParse, "damaged: {}", ::ZSTD_getErrorName(left));
      }
      lines.add(std::string_view(text).substr(0, out.pos));
      full = out.pos == out.size && left != 0;
      if (left == 0) {
        lines.forget();
      }
    }
  }
}

Result<> read_job_file(const DataDirectory& directory,
                       const std::string& name,
                       const std::function<void(std::string_view line)>& use) {
  CEEMS_TRY(fd, directory.open_file(name));
  const auto next = [&](std::string& piece) -> Result<> {
    piece.resize(kPiece);
    ssize_t size = -1;
    do {
      size = ::read(fd.get(), piece.data(), piece.size());
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
      return fail(errno_error(errno, "read"));
    }
    piece.resize(static_cast<std::size_t>(size));
    return {};
  };
  CEEMS_TRY_IN(directory.path() + "/" + name, read_frames(next, use));
  return {};
}

}  // namespace ceems::exporter::run
