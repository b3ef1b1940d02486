# aarch64: Debian's cross compiler, and qemu to run what it makes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
# Libraries of this machine are of no use there; those that are headers alone
# serve both.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu /usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(host_libraries /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_IGNORE_PATH ${host_libraries} /lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
# Its package stands beside its library; Kiln takes the headers alone.
set(fmt_DIR ${host_libraries}/cmake/fmt)
