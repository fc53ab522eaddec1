-- Prints one line before sbatch submits a job: what such jobs took, as `cacct check --brief` says it. Off until an administrator copies
-- this file to /etc/slurm and sets CliFilterPlugins=cli_filter/lua. Whatever fails or hangs here, the job is submitted.
-- docs/check.md, "At submission", says what is safe about it and why.

local CHECK = "/usr/bin/cacct check --brief --timeout 280 --form slurm --"
local LIMIT = "exec /usr/bin/timeout -s KILL 0.3 "  -- also ends a cacct that waits for a file system
local MAX_COMMAND = 65536                           -- bytes; the kernel takes no more than 128 KiB in one argument

-- A word in single quotes, in which a shell changes nothing. A quote itself stands outside of them.
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The words behind sbatch, as the user typed them: this file runs in the user's own sbatch.
local function words()
  local file = assert(io.open("/proc/self/cmdline", "rb"))
  local text = file:read("*a")
  file:close()
  assert(#text <= MAX_COMMAND)
  local found = {}
  for word in text:gmatch("([^%z]*)%z") do
    found[#found + 1] = quoted(word)
  end
  table.remove(found, 1)
  return table.concat(found, " ")
end

local function show(options)
  if options["type"] ~= "sbatch" or (options["wrap"] == nil and options["argv"][1] == nil) then
    return  -- no script, or one from standard input, which is sbatch's to read
  end
  local pipe = assert(io.popen(LIMIT .. CHECK .. " " .. words() .. " </dev/null 2>/dev/null"))
  local line = pipe:read("*l")
  pipe:close()
  if line and line ~= "" then
    io.stderr:write("sbatch: ", line, "\n")
  end
end

function slurm_cli_pre_submit(options, offset)
  pcall(show, options)
  return slurm.SUCCESS
end

function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
  return slurm.SUCCESS
end
