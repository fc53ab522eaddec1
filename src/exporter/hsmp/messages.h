#pragma once

// The messages of HSMP. The kernel's header exists for x86-64 alone; on other machines the numbers
// are enough, because there is no device to send them to.
#if defined(__x86_64__)
#include <asm/amd_hsmp.h>
#else
#include <cstdint>

inline constexpr std::uint32_t HSMP_GET_SOCKET_POWER = 0x04;
inline constexpr std::uint32_t HSMP_GET_SOCKET_POWER_LIMIT = 0x06;
inline constexpr std::uint32_t HSMP_GET_SOCKET_POWER_LIMIT_MAX = 0x07;
inline constexpr std::uint32_t HSMP_GET_FCLK_MCLK = 0x0f;
inline constexpr std::uint32_t HSMP_GET_CCLK_THROTTLE_LIMIT = 0x10;
inline constexpr std::uint32_t HSMP_GET_C0_PERCENT = 0x11;
inline constexpr std::uint32_t HSMP_GET_DDR_BANDWIDTH = 0x14;
#endif
