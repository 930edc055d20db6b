-- What Fila itself offers to a script: fila.get, fila.log and fila.helpers.
--
-- The runtime config lives in one Python dict for all scripts. A script keeps what it has asked for
-- in a mirror of its own and empties it when the config changes, so a read costs a table look-up and
-- the first one after a change a call into Python.
local trusted, config_get = ...

local byte, find, sub, concat = string.byte, string.find, string.sub, table.concat
local error, type, pairs, ipairs, random = error, type, pairs, ipairs, math.random
local pack, select, tostring = string.pack, select, tostring
local tointeger, floor, min, huge = math.tointeger, math.floor, math.min, math.huge
local count = collectgarbage
local charge, hand_over = trusted.charge, trusted.hand_over

local CONFIG_KEY_BYTES_MAX = 300
local MIRROR_BYTES_MAX = 128 * 1024
-- A value that Python hands in must never hit the memory limit: Lua would jump over Python's frames.
-- 64 KiB is the longest value there is.
local VALUE_ROOM_KIB = 80

local mirror, mirror_bytes, mirror_version = {}, 0, -1
local ceiling_kib = huge

local function empty_mirror()
  mirror, mirror_bytes = {}, 0
end

local function get(config_key)
  if type(config_key) ~= "string" then
    error("fila.get: the key must be a string, got " .. type(config_key), 2)
  end
  local value = mirror[config_key]
  if value == nil then
    if #config_key > CONFIG_KEY_BYTES_MAX then
      return nil   -- no such key can have been set
    end
    charge(100)
    if mirror_bytes > MIRROR_BYTES_MAX then
      empty_mirror()
    end
    if count("count") + VALUE_ROOM_KIB > ceiling_kib then
      count("collect")
      if count("count") + VALUE_ROOM_KIB > ceiling_kib then
        error("not enough memory", 0)
      end
    end
    value = config_get(config_key) or false
    mirror[config_key] = value
    mirror_bytes = mirror_bytes + #config_key + (value and #value or 0) + 100
  end
  if value == false then
    return nil
  end
  return hand_over(value)
end

-- What is to be told after a crossing, packed: lines of fila.log, and names of returned fields that mean nothing.
-- Bounded, whatever a script does: what is more is counted.
local LINES_MAX = 8
local LINE_BYTES_MAX = 512
local WORDS_MAX = 16
local FIELDS_MAX = 8
local FIELD_BYTES_MAX = 64

local lines, lines_count, lines_lost = {}, 0, 0
local fields, fields_count, fields_lost = {}, 0, 0

-- A script's own __tostring is not asked: it would run outside the limits of where this is called from.
local function word(value)
  local kind = type(value)
  if kind == "string" then
    return sub(value, 1, LINE_BYTES_MAX)
  elseif kind == "number" or kind == "boolean" or kind == "nil" then
    return tostring(value)
  end
  return "<" .. kind .. ">"
end

local function log(...)
  local count_of_words = min(select("#", ...), WORDS_MAX)
  charge(50 + 20 * count_of_words)
  if lines_count == LINES_MAX then
    lines_lost = lines_lost + 1
    return
  end
  local words = { ... }
  for i = 1, count_of_words do
    words[i] = word(words[i])
  end
  lines_count = lines_count + 1
  lines[lines_count] = sub(concat(words, " ", 1, count_of_words), 1, LINE_BYTES_MAX)
end

trusted.ignore_field = function(name)
  local shown = sub(word(name), 1, FIELD_BYTES_MAX)
  local seen = fields[shown]
  if seen then
    fields[shown] = seen + 1
  elseif fields_count < FIELDS_MAX then
    fields[shown], fields_count = 1, fields_count + 1
  else
    fields_lost = fields_lost + 1
  end
end

-- false, or for each thing a byte that says what, a number, and a text.
trusted.take_notes = function()
  if lines_count + fields_count == 0 then
    return false
  end
  local notes, at = {}, 0
  for i = 1, lines_count do
    at = at + 1
    notes[at] = pack(">c1I4s2", "l", 1, lines[i])
  end
  for name, times in pairs(fields) do
    at = at + 1
    notes[at] = pack(">c1I4s2", "f", times, name)
  end
  notes[at + 1] = pack(">c1I4s2", "L", lines_lost, "")
  notes[at + 2] = pack(">c1I4s2", "F", fields_lost, "")
  lines, lines_count, lines_lost = {}, 0, 0
  fields, fields_count, fields_lost = {}, 0, 0
  return concat(notes)
end

local function number(value, name, helper)
  if type(value) ~= "number" or value ~= value then
    error("fila.helpers." .. helper .. ": " .. name .. " must be a number, got " .. type(value), 3)
  end
  return value
end

local helpers = {}

-- The delay before the next attempt in ms: base_ms doubled with each attempt after the first, at most
-- max_ms, of which the upper half is left to chance so that what failed together does not return together.
function helpers.exponential_backoff(attempts, base_ms, max_ms)
  attempts = number(attempts, "attempts", "exponential_backoff")
  base_ms = number(base_ms, "base_ms", "exponential_backoff")
  max_ms = number(max_ms, "max_ms", "exponential_backoff")
  if base_ms < 0 or max_ms < 0 or max_ms == huge then
    error("fila.helpers.exponential_backoff: base_ms and max_ms must be finite and not negative", 2)
  end
  local full = base_ms
  if attempts > 1 and base_ms > 0 then
    full = base_ms * 2.0 ^ (attempts - 1)
  end
  full = min(full, max_ms)
  return tointeger(floor(full / 2 + random() * full / 2 + 0.5))
end

-- True once the retries are used up: attempt `max` + 1 and later ones.
function helpers.max_retries(attempts, max)
  return number(attempts, "attempts", "max_retries") > number(max, "max", "max_retries")
end

local function header_of(msg, name, helper)
  local headers = type(msg) == "table" and msg.headers or nil
  if type(headers) ~= "table" then
    error("fila.helpers." .. helper .. ": the first argument must be msg", 3)
  end
  local value = headers[name]
  if type(value) == "string" then
    return value
  end
  return nil
end

-- A routing table whose fairness key is a header; empty (the queue's own policy) for a message without it.
function helpers.tenant_route(msg, header)
  return { fairness_key = header_of(msg, header, "tenant_route") }
end

-- "a{b}c" becomes { "a", "c" } and { "b" }: texts, and the names between them.
local function parse(pattern)
  local texts, names, at = {}, {}, 1
  while true do
    local open = find(pattern, "{", at, true)
    local close = open and find(pattern, "}", open, true)
    if not close then
      texts[#texts + 1] = sub(pattern, at)
      return { texts = texts, names = names }
    end
    texts[#texts + 1], names[#names + 1] = sub(pattern, at, open - 1), sub(pattern, open + 1, close - 1)
    at = close + 1
  end
end

local parsed_by_pattern, parsed_count = {}, 0
local PARSED_MAX = 32
local PATTERNS_MAX = 64
local PATTERN_BYTES_MAX = 1024

local function parsed(pattern)
  local found = parsed_by_pattern[pattern]
  if not found then
    if type(pattern) ~= "string" or #pattern > PATTERN_BYTES_MAX then
      error("fila.helpers.rate_limit_keys: a pattern must be a string of at most " .. PATTERN_BYTES_MAX
        .. " bytes, such as \"provider:{provider}\"", 3)
    end
    if parsed_count == PARSED_MAX then
      parsed_by_pattern, parsed_count = {}, 0
    end
    found = parse(pattern)
    parsed_by_pattern[pattern], parsed_count = found, parsed_count + 1
  end
  return found
end

-- One throttle key a pattern, {name} replaced by that header; a pattern whose header is missing names no key.
function helpers.rate_limit_keys(msg, patterns)
  if type(patterns) ~= "table" then
    error("fila.helpers.rate_limit_keys: patterns must be a list of strings, got " .. type(patterns), 2)
  end
  local keys = {}
  for i = 1, min(#patterns, PATTERNS_MAX) do
    local pattern = parsed(patterns[i])
    local texts, names = pattern.texts, pattern.names
    local key = texts[1]
    for n = 1, #names do
      local value = header_of(msg, names[n], "rate_limit_keys")
      if not value then
        key = nil
        break
      end
      key = key .. value .. texts[n + 1]
    end
    if key then
      keys[#keys + 1] = key
    end
  end
  return keys
end

trusted.fila = trusted.read_only({ get = get, log = log, helpers = trusted.read_only(helpers) })

trusted.see_config = function(version, ceiling)
  ceiling_kib = ceiling
  if version ~= mirror_version then
    mirror_version = version
    if mirror_bytes > 0 then
      empty_mirror()
    end
  end
end
