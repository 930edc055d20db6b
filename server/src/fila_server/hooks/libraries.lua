-- The environment a script lives in: an allow-list. What is not named here does not exist for it.
--
-- Library tables are empty stand-ins that read from a table of ours and refuse writes, so a script
-- changes nothing for the next call, not even through rawset or a string's metatable. Functions
-- whose work depends on their arguments charge it to the meter before they start; those that call
-- back or walk ranges are written in Lua, so that the instruction count sees every step.
local trusted, seed = ...

local error, getmetatable, ipairs, next, pairs, rawequal = error, getmetatable, ipairs, next, pairs, rawequal
local rawget, rawlen, rawset, select, setmetatable = rawget, rawlen, rawset, select, setmetatable
local tonumber, tostring, type = tonumber, tostring, type
local string, table, math, utf8 = string, table, math, utf8
local unpack = table.unpack
local charge, make_room, hand_over = trusted.charge, trusted.make_room, trusted.hand_over

local UNPACKED_MAX = 4096
local REPEATED_BYTES_MAX = 256 * 1024

local is_read_only = {}

local find, sub = string.find, string.sub

-- tostring without addresses: "table" instead of "table: 0x55d0c8a3e2f0". They would tell where the broker's
-- memory lies, and could be put into a key, which is stored and shown to everybody.
local function safe_tostring(...)
  local value = ...
  local text = tostring(...)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    local address = find(text, ": 0x%x+$", -40)   -- at its end, however long what __tostring made of it
    if address then
      return sub(text, 1, address - 1)   -- a name that its metatable gives stays
    end
  end
  return text
end

local function refuse_write(_, key)
  error("libraries are read-only, so " .. safe_tostring(key) .. " cannot be set", 2)
end

local function read_only(library)
  local function walk()
    local copy = {}   -- the loop's state is visible to the script, so it must not be the library itself
    for name, value in next, library do
      copy[name] = value
    end
    return next, copy, nil
  end
  local stand_in = setmetatable({}, {
    __index = library, __newindex = refuse_write, __pairs = walk, __metatable = false,
  })
  is_read_only[stand_in] = true
  return stand_in
end

local function bytes_of(value)
  return type(value) == "string" and #value or 16
end

local function integer(value, default, name)
  if value == nil then
    return default
  end
  local number = math.tointeger(tonumber(value))
  if not number then
    error(name .. ": expected an integer, got " .. type(value), 3)
  end
  return number
end

-- string ---------------------------------------------------------------------------------------

local safe_string = {
  char = string.char, len = string.len, sub = string.sub,
  find = trusted.patterns.find, match = trusted.patterns.match,
  gmatch = trusted.patterns.gmatch, gsub = trusted.patterns.gsub,
}

function safe_string.byte(text, from, to)
  if to ~= nil then
    from = integer(from, 1, "string.byte")
    to = integer(to, from, "string.byte")
    local length = bytes_of(text)
    if from < 0 then from = math.max(length + from + 1, 1) end
    if to < 0 then to = length + to + 1 end
    if math.min(to, length) - math.max(from, 1) >= UNPACKED_MAX then
      error("string.byte: more than " .. UNPACKED_MAX .. " values", 2)
    end
    charge(math.max(0, math.min(to, length) - from))
  end
  return string.byte(text, from, to)
end

function safe_string.lower(text)
  charge(bytes_of(text))
  make_room()
  return hand_over(string.lower(text))
end

function safe_string.upper(text)
  charge(bytes_of(text))
  make_room()
  return hand_over(string.upper(text))
end

function safe_string.reverse(text)
  charge(bytes_of(text))
  make_room()
  return hand_over(string.reverse(text))
end

function safe_string.rep(text, count, separator)
  count = integer(count, nil, "string.rep")
  if count and count > 0 then
    local bytes = (bytes_of(text) + (separator == nil and 0 or bytes_of(separator))) * (count + 0.0)
    if bytes > REPEATED_BYTES_MAX or count > REPEATED_BYTES_MAX then
      error("string.rep: the result would have more than " .. REPEATED_BYTES_MAX .. " bytes", 2)
    end
    charge(count)
  end
  make_room()
  return hand_over(string.rep(text, count, separator))
end

function safe_string.format(template, ...)
  charge(bytes_of(template) * 20)   -- "%.99f" of a huge number is the dearest item
  make_room()
  local given, count = { ... }, select("#", ...)
  charge(count)
  for i = 1, count do
    local kind = type(given[i])
    if kind == "table" or kind == "function" or kind == "userdata" or kind == "thread" then
      given[i] = safe_tostring(given[i])
    end
  end
  if type(template) == "string" and find(template, "p", 1, true) then
    local at, conversion = 1, nil
    repeat
      local _, last
      _, last, conversion = find(template, "%%[-+ #0]*%d*%.?%d*(.)", at)
      if conversion == "p" then
        error("string.format: %p is not available to hooks", 2)
      end
      at = last and last + 1
    until not at
  end
  return hand_over(string.format(template, unpack(given, 1, count)))
end

function safe_string.pack(template, ...)
  charge(bytes_of(template) * 4)
  make_room()
  return hand_over(string.pack(template, ...))
end

function safe_string.packsize(template)
  charge(bytes_of(template) * 4)
  return string.packsize(template)
end

function safe_string.unpack(template, text, from)
  charge(bytes_of(template) * 4 + (bytes_of(text) >> 4))   -- "z" looks for the end of the text
  return string.unpack(template, text, from)
end

-- ("x"):rep(n) looks its method up here, so the original must not be reachable this way either.
local string_meta = getmetatable("")
string_meta.__index = safe_string
string_meta.__metatable = false

-- table ----------------------------------------------------------------------------------------

local safe_table = {}

function safe_table.insert(list, ...)
  local given = select("#", ...)
  local size = #list
  if given == 1 then
    list[size + 1] = (...)
    return
  elseif given ~= 2 then
    error("wrong number of arguments to 'insert'", 2)
  end
  local position, value = ...
  position = integer(position, nil, "table.insert")
  if position < 1 or position > size + 1 then
    error("table.insert: position out of bounds", 2)
  end
  for i = size, position, -1 do
    list[i + 1] = list[i]
  end
  list[position] = value
end

function safe_table.remove(list, position)
  local size = #list
  position = integer(position, size, "table.remove")
  if position ~= size and (position < 1 or position > size + 1) then
    error("table.remove: position out of bounds", 2)
  end
  local removed = list[position]
  while position < size do
    list[position] = list[position + 1]
    position = position + 1
  end
  list[position] = nil
  return removed
end

function safe_table.move(from, first, last, target, to)
  to = to == nil and from or to
  first, last = integer(first, nil, "table.move"), integer(last, nil, "table.move")
  target = integer(target, nil, "table.move")
  if last >= first then
    if target > last or target <= first or not rawequal(from, to) then
      for i = 0, last - first do
        to[target + i] = from[first + i]
      end
    else
      for i = last - first, 0, -1 do
        to[target + i] = from[first + i]
      end
    end
  end
  return to
end

function safe_table.concat(list, separator, first, last)
  first = integer(first, 1, "table.concat")
  last = integer(last, nil, "table.concat") or #list
  if last >= first then
    charge((last - first + 1.0) * 4)
  end
  make_room()
  return hand_over(table.concat(list, separator, first, last))
end

function safe_table.unpack(list, first, last)
  first = integer(first, 1, "table.unpack")
  last = integer(last, nil, "table.unpack") or #list
  if last >= first then
    local count = last - first + 1.0
    if count > UNPACKED_MAX then
      error("table.unpack: more than " .. UNPACKED_MAX .. " values", 2)
    end
    charge(count // 1)
  end
  return table.unpack(list, first, last)
end

safe_table.pack = table.pack

-- The comparison always goes through a Lua function: one in C (or Lua's own `<`, on long strings)
-- would sort for seconds without an instruction that could be counted.
function safe_table.sort(list, comes_first)
  if comes_first == nil then
    return table.sort(list, function(a, b) return a < b end)
  elseif type(comes_first) ~= "function" then
    error("table.sort: the comparison must be a function, got " .. type(comes_first), 2)
  end
  return table.sort(list, function(a, b) return comes_first(a, b) end)
end

-- utf8 -----------------------------------------------------------------------------------------

local safe_utf8 = { char = utf8.char, charpattern = utf8.charpattern }

function safe_utf8.codepoint(text, from, to, lax)
  local count = to == nil and 1 or bytes_of(text)
  if count > UNPACKED_MAX then
    error("utf8.codepoint: more than " .. UNPACKED_MAX .. " bytes at once; use utf8.codes", 2)
  end
  charge(count)
  return utf8.codepoint(text, from, to, lax)
end

for _, name in ipairs({ "codes", "len", "offset" }) do
  local original = utf8[name]
  safe_utf8[name] = function(text, ...)
    charge(bytes_of(text))
    return original(text, ...)
  end
end

-- the rest -------------------------------------------------------------------------------------

math.randomseed(seed)

local function safe_setmetatable(object, meta)
  -- A finalizer runs with hooks off: an endless one could not be stopped.
  if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
    error("setmetatable: __gc is not available to hooks", 2)
  end
  return setmetatable(object, meta)
end

local function safe_rawset(object, key, value)
  if is_read_only[object] then
    refuse_write(object, key)
  end
  return rawset(object, key, value)
end

trusted.read_only = read_only
trusted.new_environment = function(fila)
  return {
    assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
    pcall = trusted.pcall, rawequal = rawequal, rawget = rawget, rawlen = rawlen, rawset = safe_rawset,
    select = select, setmetatable = safe_setmetatable, tonumber = tonumber, tostring = safe_tostring, type = type,
    math = read_only(math), string = read_only(safe_string), table = read_only(safe_table),
    utf8 = read_only(safe_utf8), fila = fila,
  }
end
