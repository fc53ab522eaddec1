# Sources and tests of the energy part of lib_exporter; included by src/exporter/CMakeLists.txt, which
# adds EXPORTER_ENERGY_SRCS and EXPORTER_ENERGY_TESTS to its lists.

# The power table is compiled in, so that the one binary is all a node needs.
set(power_table ${CMAKE_SOURCE_DIR}/data/power-models/cpus.csv)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${power_table})
file(READ ${power_table} CEEMS_POWER_TABLE)
configure_file(${CMAKE_CURRENT_LIST_DIR}/power_table.cc.in
               ${CMAKE_CURRENT_BINARY_DIR}/energy_power_table.cc @ONLY)

set(EXPORTER_ENERGY_SRCS
    ${CMAKE_CURRENT_BINARY_DIR}/energy_power_table.cc
    collectors/energy.cc
    energy/account.cc
    energy/attribution.cc
    energy/counter_unwrap.cc
    energy/held_power.cc
    energy/host_meters.cc
    energy/idle_power.cc
    energy/options.cc
    energy/power_model.cc
    energy/sampler.cc
    energy/unit_table.cc)

set(EXPORTER_ENERGY_TESTS
    collectors/energy_test.cc
    energy/account_device_test.cc
    energy/account_property_test.cc
    energy/account_test.cc
    energy/attribution_test.cc
    energy/counter_unwrap_test.cc
    energy/held_power_test.cc
    energy/host_meters_test.cc
    energy/idle_power_test.cc
    energy/options_test.cc
    energy/power_model_test.cc
    energy/sampler_test.cc
    energy/unit_table_test.cc)
