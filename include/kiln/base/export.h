// export.h: what Kiln's shared libraries show.
//
// Everything is hidden but what stands in a public header: those open their
// namespace with KILN_API.
#pragma once

#define KILN_API [[gnu::visibility("default")]]
