#include "net/encoding.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/strings.h"

namespace ceems::net {

namespace {

/// The weight in the parameters of one element: 1 if there is none, 0 (rejected) if it is invalid.
double weight(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view one = trim(take_until(parameters, ';'));
    if (one.starts_with("q=") || one.starts_with("Q=")) {
      const auto value = parse_double(one.substr(2));
      return value && *value >= 0 && *value <= 1 ? *value : 0;
    }
  }
  return 1;
}

}  // namespace

std::string_view to_string(Encoding encoding) {
  switch (encoding) {
    case Encoding::kGzip:
      return "gzip";
    case Encoding::kZstd:
      return "zstd";
    case Encoding::kDeflate:
      return "deflate";
    case Encoding::kIdentity:
      break;
  }
  return "identity";
}

Encoding negotiate_encoding(std::string_view accept_encoding) {
  // In the order of preference for equal weights.
  constexpr std::array kOffers = {Encoding::kIdentity, Encoding::kZstd, Encoding::kGzip,
                                  Encoding::kDeflate};
  std::array<std::optional<double>, kOffers.size()> named;
  std::optional<double> others;
  while (!accept_encoding.empty()) {
    std::string_view rest = take_until(accept_encoding, ',');
    std::string name = to_lower(trim(take_until(rest, ';')));
    if (name == "x-gzip") {
      name = "gzip";
    }
    if (name == "*") {
      others = weight(rest);
    }
    for (std::size_t i = 0; i < kOffers.size(); ++i) {
      if (name == to_string(kOffers[i])) {
        named[i] = weight(rest);
      }
    }
  }
  Encoding best = Encoding::kIdentity;
  double best_weight = 0;
  for (std::size_t i = 0; i < kOffers.size(); ++i) {
    const double value = named[i].value_or(others.value_or(0));
    if (value > best_weight) {
      best = kOffers[i];
      best_weight = value;
    }
  }
  return best;
}

bool compressible_type(std::string_view content_type) {
  const std::string type = to_lower(trim(content_type.substr(0, content_type.find(';'))));
  constexpr std::array<std::string_view, 7> kTypes = {
      "application/json",         "application/javascript", "application/x-javascript",
      "application/xml",          "image/svg+xml",          "application/openmetrics-text",
      "application/manifest+json"};
  return type.starts_with("text/") || type.ends_with("+xml") ||
         std::ranges::find(kTypes, type) != kTypes.end();
}

struct Compressor::Impl {
  Encoding encoding = Encoding::kIdentity;
  bool ready = false;
  z_stream deflate_stream{};
  ZSTD_CCtx* zstd = nullptr;

  Impl(Encoding which, int level) : encoding(which) {
    constexpr int kWindow = 15;
    constexpr int kGzipHeader = 16;  // added to the window for gzip (zlib.h)
    constexpr int kMemory = 8;
    if (of_zlib()) {
      ready = deflateInit2(&deflate_stream, std::clamp(level, 1, 9), Z_DEFLATED,
                           encoding == Encoding::kGzip ? kWindow + kGzipHeader : kWindow, kMemory,
                           Z_DEFAULT_STRATEGY) == Z_OK;
    } else if (encoding == Encoding::kZstd) {
      zstd = ZSTD_createCCtx();
      ready =
          zstd != nullptr && ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel,
                                                                 std::clamp(level / 2, 1, 4))) == 0;
    } else {
      ready = true;
    }
  }
  ~Impl() {
    if (of_zlib() && ready) {
      deflateEnd(&deflate_stream);
    }
    ZSTD_freeCCtx(zstd);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] bool of_zlib() const {
    return encoding == Encoding::kGzip || encoding == Encoding::kDeflate;
  }

  Result<> zlib_add(std::string_view text, bool last, std::string& out) {
    std::array<unsigned char, 16384> piece;  // NOLINT(*-member-init): filled by deflate()
    do {
      const std::string_view part = text.substr(0, std::numeric_limits<uInt>::max());
      text.remove_prefix(part.size());
      // zlib takes a pointer to mutable bytes but does not write to them.
      deflate_stream.next_in =
          const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
      deflate_stream.avail_in = static_cast<uInt>(part.size());
      const int flush = last && text.empty() ? Z_FINISH : Z_NO_FLUSH;
      do {
        deflate_stream.next_out = piece.data();
        deflate_stream.avail_out = static_cast<uInt>(piece.size());
        if (deflate(&deflate_stream, flush) == Z_STREAM_ERROR) {
          return fail(ErrorCode::kInternal, "compressing the answer: zlib failed");
        }
        out.append(reinterpret_cast<const char*>(piece.data()),
                   piece.size() - deflate_stream.avail_out);
      } while (deflate_stream.avail_out == 0);
    } while (!text.empty());
    return {};
  }

  Result<> zstd_add(std::string_view text, bool last, std::string& out) const {
    std::array<char, 16384> piece;  // NOLINT(*-member-init): filled by ZSTD_compressStream2()
    ZSTD_inBuffer input{text.data(), text.size(), 0};
    bool more = true;
    while (more) {
      ZSTD_outBuffer output{piece.data(), piece.size(), 0};
      const std::size_t left =
          ZSTD_compressStream2(zstd, &output, &input, last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) {
        return fail(ErrorCode::kInternal, "compressing the answer: zstd: {}",
                    ZSTD_getErrorName(left));
      }
      out.append(piece.data(), output.pos);
      more = last ? left != 0 : input.pos < input.size;
    }
    return {};
  }
};

Compressor::Compressor(Encoding encoding, int level)
    : impl_(std::make_unique<Impl>(encoding, level)) {}
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

Result<> Compressor::add(std::string_view text, bool last, std::string& out) {
  if (!impl_->ready) {
    return fail(ErrorCode::kInternal, "compressing the answer: no memory for the compressor");
  }
  switch (impl_->encoding) {
    case Encoding::kGzip:
    case Encoding::kDeflate:
      return impl_->zlib_add(text, last, out);
    case Encoding::kZstd:
      return impl_->zstd_add(text, last, out);
    case Encoding::kIdentity:
      break;
  }
  out.append(text);
  return {};
}

}  // namespace ceems::net
