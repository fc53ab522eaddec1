#include <limits>
#include <optional>

#include "exporter/profile/symbol/cfi/cfi.h"

namespace ceems::exporter::profile {
namespace {

// DWARF register numbers of x86-64 (System V ABI, figure 3.36).
constexpr std::uint64_t kRbp = 6;
constexpr std::uint64_t kRsp = 7;

constexpr std::size_t kMaxRemembered = 32;

using Kind = RegisterRule::Kind;

// Opcodes of DW_CFA_*; the first three have an operand in their low bits.
enum : std::uint8_t {
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xC0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0A,
  kRestoreState = 0x0B,
  kDefCfa = 0x0C,
  kDefCfaRegister = 0x0D,
  kDefCfaOffset = 0x0E,
  kDefCfaExpression = 0x0F,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kMipsAdvanceLoc8 = 0x1D,
  kGnuWindowSave = 0x2D,
  kGnuArgsSize = 0x2E,
  kGnuNegativeOffsetExtended = 0x2F,
};

// Opcodes of DW_OP_*.
enum : std::uint8_t {
  kOpDeref = 0x06,
  kOpAnd = 0x1A,
  kOpPlus = 0x22,
  kOpPlusUconst = 0x23,
  kOpShl = 0x24,
  kOpGe = 0x2A,
  kOpLit0 = 0x30,
  kOpBreg0 = 0x70,
};

/// A number times a factor of the CIE, modulo 2^64 as consumers compute it.
std::int64_t scaled(std::uint64_t value, std::int64_t factor) {
  return static_cast<std::int64_t>(value * static_cast<std::uint64_t>(factor));
}

/// The expression of a linker for its lazy procedure linkage table:
/// breg7 8, breg16 0, lit15, and, litN, ge, lit3, shl, plus. Returns N.
std::optional<std::uint8_t> plt_threshold(std::string_view expression) {
  ByteReader reader(expression);
  if (reader.u8() != kOpBreg0 + kRsp || reader.sleb() != 8 ||
      reader.u8() != kOpBreg0 + kReturnAddress || reader.sleb() != 0 ||
      reader.u8() != kOpLit0 + 15 || reader.u8() != kOpAnd) {
    return std::nullopt;
  }
  const unsigned threshold = reader.u8();
  if (reader.u8() != kOpGe || reader.u8() != kOpLit0 + 3 || reader.u8() != kOpShl ||
      reader.u8() != kOpPlus || !reader.good() || !reader.at_end() || threshold < kOpLit0 ||
      threshold > kOpLit0 + 15) {
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(threshold - kOpLit0);
}

void set_cfa_expression(CfiState& state, std::string_view expression) {
  state.cfa = CfiState::Cfa::kOther;
  if (const auto threshold = plt_threshold(expression)) {
    state.cfa = CfiState::Cfa::kPlt;
    state.cfa_offset = *threshold;
    return;
  }
  ByteReader reader(expression);
  const unsigned base = reader.u8();
  state.cfa_offset = reader.sleb();
  if (reader.u8() != kOpDeref || !reader.good()) {
    return;
  }
  if (reader.at_end() && base == kOpBreg0 + kRsp) {
    state.cfa = CfiState::Cfa::kRspDeref;
  } else if (reader.at_end() && base == kOpBreg0 + kRbp) {
    state.cfa = CfiState::Cfa::kRbpDeref;
  } else if (base == kOpBreg0 + kRsp && reader.u8() == kOpPlusUconst && reader.uleb() == 8 &&
             reader.good() && reader.at_end()) {
    state.cfa = CfiState::Cfa::kRspDerefPlus8;
  }
}

RegisterRule register_expression(std::string_view expression) {
  ByteReader reader(expression);
  const unsigned base = reader.u8();
  const std::int64_t offset = reader.sleb();
  if (!reader.good() || !reader.at_end() || (base != kOpBreg0 + kRsp && base != kOpBreg0 + kRbp)) {
    return {.kind = Kind::kOther};
  }
  return {.kind = base == kOpBreg0 + kRsp ? Kind::kAtRsp : Kind::kAtRbp, .offset = offset};
}

template <class Number>
bool fits(std::int64_t value) {
  return value >= std::numeric_limits<Number>::min() && value <= std::numeric_limits<Number>::max();
}

UnwindRow stop(std::int16_t reason) {
  return {.pc = 0, .cfa = cfa_rule::kStop, .rbp = 0, .rbp_offset = reason, .cfa_offset = 0};
}

std::uint8_t cfa_of(const CfiState& state) {
  const bool signal = state.return_address.kind == Kind::kAtRsp &&
                      state.return_address.offset == state.cfa_offset + 8;
  const bool usual = state.return_address.kind == Kind::kAtCfa && state.return_address.offset == -8;
  switch (state.cfa) {
    case CfiState::Cfa::kRspDeref:
      return signal ? cfa_rule::kSignal : cfa_rule::kStop;
    case CfiState::Cfa::kPlt:
      return usual ? cfa_rule::kPlt : cfa_rule::kStop;
    case CfiState::Cfa::kRbpDeref:
      return usual ? cfa_rule::kRbpDeref : cfa_rule::kStop;
    case CfiState::Cfa::kRspDerefPlus8:
      return usual ? cfa_rule::kRspDerefPlus8 : cfa_rule::kStop;
    case CfiState::Cfa::kRegister:
      if (usual && state.cfa_register == kRsp) {
        return cfa_rule::kRsp;
      }
      return usual && state.cfa_register == kRbp ? cfa_rule::kRbp : cfa_rule::kStop;
    default:
      return cfa_rule::kStop;
  }
}

}  // namespace

UnwindRow row_of(const CfiState& state) {
  if (state.return_address.kind == Kind::kUndefined) {
    return stop(stop_reason::kOutermost);
  }
  // The sum in cfa_of() must not overflow, either.
  if (!fits<std::int32_t>(state.cfa_offset) || cfa_of(state) == cfa_rule::kStop) {
    return stop(stop_reason::kInexpressible);
  }
  UnwindRow row{.pc = 0,
                .cfa = cfa_of(state),
                .rbp = rbp_rule::kUndefined,
                .rbp_offset = 0,
                .cfa_offset = static_cast<std::int32_t>(state.cfa_offset)};
  switch (state.rbp.kind) {
    case Kind::kSame:
      row.rbp = rbp_rule::kSame;
      return row;
    case Kind::kAtCfa:
      row.rbp = rbp_rule::kAtCfa;
      break;
    case Kind::kAtRbp:
      row.rbp = rbp_rule::kAtRbp;
      break;
    case Kind::kAtRsp:
      row.rbp = rbp_rule::kAtRsp;
      break;
    default:
      return row;
  }
  if (fits<std::int16_t>(state.rbp.offset)) {
    row.rbp_offset = static_cast<std::int16_t>(state.rbp.offset);
  } else {
    row.rbp = rbp_rule::kUndefined;
  }
  return row;
}

CfiInterpreter::Step CfiInterpreter::step(ByteReader& reader, std::uint64_t& advance) {
  const std::uint8_t code = reader.u8();
  const std::uint8_t low = code & 0x3FU;
  switch (code & 0xC0U) {
    case kAdvanceLoc:
      advance = low * cie_.code_align;
      return Step::kAdvanced;
    case kOffset:
      set(low, {.kind = Kind::kAtCfa, .offset = scaled(reader.uleb(), cie_.data_align)});
      return Step::kDone;
    case kRestore:
      restore(low);
      return Step::kDone;
    default:
      break;
  }
  if (code == kSetLoc) {
    return Step::kSetLocation;
  }
  if (advances(code, reader, advance)) {
    return Step::kAdvanced;
  }
  return (defines_cfa(code, reader) || defines_register(code, reader) || others(code, reader))
             ? Step::kDone
             : Step::kBroken;
}

bool CfiInterpreter::advances(std::uint8_t code, ByteReader& reader, std::uint64_t& advance) const {
  switch (code) {
    case kAdvanceLoc1:
      advance = reader.u8() * cie_.code_align;
      return true;
    case kAdvanceLoc2:
      advance = reader.u16() * cie_.code_align;
      return true;
    case kAdvanceLoc4:
      advance = reader.u32() * cie_.code_align;
      return true;
    case kMipsAdvanceLoc8:
      advance = reader.u64() * cie_.code_align;
      return true;
    default:
      return false;
  }
}

bool CfiInterpreter::defines_cfa(std::uint8_t code, ByteReader& reader) {
  switch (code) {
    case kDefCfa:
    case kDefCfaSf:
      state_.cfa = CfiState::Cfa::kRegister;
      state_.cfa_register = reader.uleb();
      state_.cfa_offset = cfa_offset(code == kDefCfaSf, reader);
      return true;
    case kDefCfaRegister:
      state_.cfa = CfiState::Cfa::kRegister;
      state_.cfa_register = reader.uleb();
      return true;
    case kDefCfaOffset:
    case kDefCfaOffsetSf:
      state_.cfa_offset = cfa_offset(code == kDefCfaOffsetSf, reader);
      return true;
    case kDefCfaExpression:
      set_cfa_expression(state_, reader.take(reader.uleb()));
      return true;
    default:
      return false;
  }
}

std::int64_t CfiInterpreter::cfa_offset(bool is_signed, ByteReader& reader) const {
  return is_signed ? scaled(static_cast<std::uint64_t>(reader.sleb()), cie_.data_align)
                   : static_cast<std::int64_t>(reader.uleb());
}

bool CfiInterpreter::defines_register(std::uint8_t code, ByteReader& reader) {
  const auto number = [&reader] { return reader.uleb(); };
  switch (code) {
    case kOffsetExtended: {
      const std::uint64_t target = number();
      set(target, {.kind = Kind::kAtCfa, .offset = scaled(number(), cie_.data_align)});
      return true;
    }
    case kOffsetExtendedSf: {
      const std::uint64_t target = number();
      set(target, {.kind = Kind::kAtCfa,
                   .offset = scaled(static_cast<std::uint64_t>(reader.sleb()), cie_.data_align)});
      return true;
    }
    case kGnuNegativeOffsetExtended: {
      const std::uint64_t target = number();
      set(target, {.kind = Kind::kAtCfa, .offset = scaled(0 - number(), cie_.data_align)});
      return true;
    }
    case kRestoreExtended:
      restore(number());
      return true;
    case kUndefined:
      set(number(), {.kind = Kind::kUndefined});
      return true;
    case kSameValue:
      set(number(), {.kind = Kind::kSame});
      return true;
    case kRegister:
    case kValOffset:
    case kValOffsetSf:
      set(number(), {.kind = Kind::kOther});
      number();  // sleb has the same length
      return true;
    case kExpression: {
      const std::uint64_t target = number();
      set(target, register_expression(reader.take(number())));
      return true;
    }
    case kValExpression:
      set(number(), {.kind = Kind::kOther});
      reader.skip(number());
      return true;
    default:
      return false;
  }
}

bool CfiInterpreter::others(std::uint8_t code, ByteReader& reader) {
  switch (code) {
    case kNop:
    case kGnuWindowSave:
      return true;
    case kGnuArgsSize:
      reader.uleb();
      return true;
    case kRememberState:
      if (remembered_.size() == kMaxRemembered) {
        return false;
      }
      remembered_.push_back(state_);
      return true;
    case kRestoreState:
      if (remembered_.empty()) {
        return false;
      }
      state_ = remembered_.back();
      remembered_.pop_back();
      return true;
    default:
      return false;
  }
}

void CfiInterpreter::set(std::uint64_t number, RegisterRule rule) {
  if (number == kRbp) {
    state_.rbp = rule;
  } else if (number == kReturnAddress) {
    state_.return_address = rule;
  }
}

void CfiInterpreter::restore(std::uint64_t number) {
  set(number, number == kRbp ? cie_.initial.rbp : cie_.initial.return_address);
}

}  // namespace ceems::exporter::profile
