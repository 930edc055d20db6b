-- Calls the script for the messages of one crossing. They come packed in one string and their routings go
-- back in one, in the layout that core/requests/parsed_frame.pyx describes: handing strings over one by one, or
-- walking tables from Python, costs more than the script itself. Returns
--
--     answered, clamped, kind, text, the routings of the first `answered` messages, notes (fila.lua)
--
-- It stops at the first failure (`kind`, `text`: why message answered + 1 failed), so that Python can
-- ask the circuit breaker before the next message, and early when the batch has taken its time or space.
local trusted = ...

local error, load, next, type = error, load, next, type
local concat = table.concat
local math_type, floor, tointeger, format = math.type, math.floor, math.tointeger, string.format
local pack_bytes, unpack_bytes, rep = string.pack, string.unpack, string.rep
local getmetatable = debug.getmetatable
local raw_pcall, make_room = trusted.raw_pcall, trusted.make_room
local begin_call, limited, check_room = trusted.begin_call, trusted.limited, trusted.check_room
local explain, ignore_field, take_notes = trusted.explain, trusted.ignore_field, trusted.take_notes

local KEY_BYTES_MAX = 4096   -- the highest a setting allows; the frame knows what this broker does
local THROTTLE_KEYS_MAX = 16
local WEIGHT_MIN, WEIGHT_MAX = 1, 1000
local COST_MIN, COST_MAX = 0.001, 1000000
local ROUTINGS_BYTES_MAX = 16 * 1024   -- of keys, after which a crossing is over; see _CROSSING_ROOM_BYTES

local KNOWN = { fairness_key = true, weight = true, cost = true, throttle_keys = true }
local FIELDS_LOOKED_AT = 16   -- of a result: more are not walked, however many a script may give

local GIVEN_FAIRNESS_KEY, GIVEN_WEIGHT, GIVEN_COST, GIVEN_THROTTLE_KEYS = 1, 2, 4, 8

-- What the routings of a crossing are made of: for each its head, then a length and a text for every key.
-- One concat at the end; packing each by itself would make and collect a string a message.
local pieces, pieces_count, routings_bytes = {}, 0, 0
local answered, clamped = 0, 0

local LENGTHS = {}
for length = 0, 256 do
  LENGTHS[length] = pack_bytes(">I2", length)
end

-- Routings without a cost have few different heads.
local HEADS_MAX = 256
local heads, heads_count = {}, 0

local function head_of(given, count, weight, cost)
  if cost then
    return pack_bytes(">BBI2d", given, count, weight, cost)
  end
  local index = weight << 9 | count << 4 | given
  local head = heads[index]
  if not head then
    head = pack_bytes(">BBI2d", given, count, weight, 0.0)
    if heads_count < HEADS_MAX then
      heads[index], heads_count = head, heads_count + 1
    end
  end
  return head
end

-- The quickest way to tell a string: scripts can't give the strings' metatable to anything else.
local STRINGS = getmetatable("")

local function refuse_key(value, name)
  if type(value) ~= "string" then
    error(format("%s must be a string, got %s", name, type(value)), 0)
  end
  error(format("%s has %d bytes; at most %d are allowed", name, #value, KEY_BYTES_MAX), 0)
end

local function weight_of(value)
  local kind = math_type(value)
  if not kind or value ~= value then
    error(format("weight must be a number, got %s (use tonumber on text)", kind and "NaN" or type(value)), 0)
  elseif value < WEIGHT_MIN then
    clamped = clamped + 1
    return WEIGHT_MIN
  elseif value > WEIGHT_MAX then
    clamped = clamped + 1
    return WEIGHT_MAX
  end
  return kind == "integer" and value or tointeger(floor(value))
end

local function cost_of(value)
  if type(value) ~= "number" then
    error(format("cost must be a number, got %s (use tonumber on text)", type(value)), 0)
  elseif not (value >= COST_MIN and value <= COST_MAX) then   -- NaN as well
    error(format("cost must be between 0.001 and 1000000, got %.14g", value), 0)
  end
  return value + 0.0
end

local function take_result(result, throttle_keys)
  local fairness_key, weight, cost = result.fairness_key, result.weight, result.cost
  local given, count, at, bytes = 0, 0, pieces_count, routings_bytes
  if fairness_key == nil then
    fairness_key = ""
  elseif getmetatable(fairness_key) == STRINGS and #fairness_key <= KEY_BYTES_MAX then
    given = GIVEN_FAIRNESS_KEY
  else
    refuse_key(fairness_key, "fairness_key")
  end
  local length = #fairness_key
  pieces[at + 2], pieces[at + 3] = LENGTHS[length] or pack_bytes(">I2", length), fairness_key
  bytes = bytes + length
  if weight ~= nil then
    given, weight = given | GIVEN_WEIGHT, weight_of(weight)
  end
  if cost ~= nil then
    given, cost = given | GIVEN_COST, cost_of(cost)
  end
  if throttle_keys ~= nil then
    if type(throttle_keys) ~= "table" then
      error("throttle_keys must be a list of strings, got " .. type(throttle_keys), 0)
    end
    given = given | GIVEN_THROTTLE_KEYS
    local key = throttle_keys[1]
    if key == nil and next(throttle_keys) ~= nil then
      error("throttle_keys must be a list (1, 2, 3, ...), got a table with other keys", 0)
    end
    while key ~= nil do
      if count == THROTTLE_KEYS_MAX then
        error(format("throttle_keys has more than %d keys", THROTTLE_KEYS_MAX), 0)
      elseif getmetatable(key) ~= STRINGS or #key > KEY_BYTES_MAX then
        refuse_key(key, "throttle_keys")
      end
      count, length = count + 1, #key
      local piece = at + 2 + 2 * count
      pieces[piece], pieces[piece + 1] = LENGTHS[length] or pack_bytes(">I2", length), key
      bytes = bytes + length
      key = throttle_keys[count + 1]
    end
  end
  local looked_at = 0
  for name in next, result do
    looked_at = looked_at + 1
    if not KNOWN[name] then
      ignore_field(name)
    end
    if looked_at == FIELDS_LOOKED_AT then
      break
    end
  end
  pieces[at + 1] = head_of(given, count, weight or 0, cost)
  answered, pieces_count, routings_bytes = answered + 1, at + 3 + 2 * count, bytes
end

-- A metatable may make the reading of a result the script's own code: for within the limits.
local function take_any_result(result)
  if type(result) ~= "table" then
    error("on_enqueue must return a table, got " .. type(result), 0)
  end
  take_result(result, result.throttle_keys)
end

local function take_plain_or_limited(result)
  if type(result) == "table" and getmetatable(result) == nil then
    local throttle_keys = result.throttle_keys
    if throttle_keys == nil or getmetatable(throttle_keys) == nil then
      take_result(result, throttle_keys)
      return
    end
  end
  local ok, problem = limited(take_any_result, result)
  if not ok then
    error(problem, 0)
  end
end

-- Functions that read n headers and the numbers of the message after them, by n. One call of unpack for a
-- message, and a table made with all its fields at once: each saves a tenth of what a crossing costs.
local READ_AT_ONCE_MAX = 16
local header_readers = {}

local function read_many(count)
  return function(messages, at)
    local headers, name, value = {}, nil, nil
    for _ = 1, count do
      name, value, at = unpack_bytes(">s4s4", messages, at)
      headers[name] = value
    end
    return headers, unpack_bytes(">I4I4", messages, at)
  end
end

local function new_header_reader(count)
  if count > READ_AT_ONCE_MAX then
    return read_many(count)
  end
  local names, fields = {}, {}
  for i = 1, count do
    names[i] = format("n%d, v%d, ", i, i)
    fields[i] = format("[n%d] = v%d, ", i, i)
  end
  local source = format(
    "local unpack, layout = ... return function(messages, at) "
    .. "local %ssize, count, after = unpack(layout, messages, at) return { %s }, size, count, after end",
    concat(names), concat(fields))
  return load(source, "=fila", "t")(unpack_bytes, ">" .. rep("s4s4", count) .. "I4I4")
end

local hook   -- the script's function

-- Routes until `count` messages are answered, one fails (returns why: kind, text), or the batch must end.
local function route_all(queue, count, messages)
  local payload_size, header_count, at = unpack_bytes(">I4I4", messages)
  while answered < count and routings_bytes < ROUTINGS_BYTES_MAX do
    if begin_call() and answered > 0 then   -- a crossing without an answer would be made for ever
      break
    end
    local message = { headers = false, payload_size = payload_size, queue = queue }   -- with room for all three
    local read = header_readers[header_count]
    if not read then
      read = new_header_reader(header_count)
      header_readers[header_count] = read
    end
    message.headers, payload_size, header_count, at = read(messages, at)
    local ok, result = limited(hook, message)
    if not ok then
      return explain(result)
    end
    message = nil
    check_room(routings_bytes)
    take_plain_or_limited(result)
  end
  return false, false
end

return function(version, ceiling, queue, count, messages)
  answered, clamped, pieces_count, routings_bytes, hook = 0, 0, 0, 0, trusted.hook
  trusted.see_config(version, ceiling)
  trusted.begin_batch(#messages)
  local ok, kind, text = raw_pcall(route_all, queue, count, messages)
  if not ok then   -- a result that is none, or too little memory to hand a message over
    kind, text = explain(kind)
  end
  if kind then
    make_room()   -- nobody has looked at what the failed call left
  end
  return answered, clamped, kind, text, concat(pieces, "", 1, pieces_count), take_notes()
end
