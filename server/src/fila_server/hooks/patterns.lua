-- string.find, match, gmatch and gsub whose work is bounded before they start.
--
-- Lua matches patterns by backtracking, in C, where no hook can stop it: `a*a*a*b` on 1 KiB runs for
-- minutes. The work is at most
--
--     starting places * subject length ^ repetitions * 2 ^ optional items * items of the pattern
--
-- where a repetition at the very end of the pattern does not count, because nothing after it can
-- fail and send it back. That product is charged; a match that could cost more than a whole
-- call may take is refused with an error the script can read (and catch, if it has another way).
local trusted = ...

local byte, find, match, gmatch, gsub = string.byte, string.find, string.match, string.gmatch, string.gsub
local error, type, tostring, max, tointeger = error, type, tostring, math.max, math.tointeger
local charge, make_room, hand_over = trusted.charge, trusted.make_room, trusted.hand_over
local work_max, format = trusted.instructions_max, string.format

local PERCENT, OPEN_SET, CLOSE_SET, CARET, DOLLAR = 37, 91, 93, 94, 36
local OPEN, CLOSE, STAR, PLUS, MINUS, QUESTION = 40, 41, 42, 43, 45, 63
local LOWER_B, LOWER_F = 98, 102
local PATTERN_BYTES_MAX = 1024

-- Returns the place behind the set that opens at `at`.
local function skip_set(pattern, at)
  at = at + 1
  if byte(pattern, at) == CARET then
    at = at + 1
  end
  repeat   -- a "]" that comes first stands for itself
    local c = byte(pattern, at)
    if not c then
      return at
    end
    at = at + (c == PERCENT and 2 or 1)
  until byte(pattern, at) == CLOSE_SET
  return at + 1
end

-- Returns the number of repetitions that can be sent back, and the factor for everything else.
local function cost_of(pattern)
  local at, length = 1, #pattern
  local repetitions, items, optional, longest_set = 0, 1, 1, 1
  local repetition_is_last = false
  if byte(pattern, 1) == CARET then
    at = 2
  end
  while at <= length do
    local c = byte(pattern, at)
    if c == OPEN or c == CLOSE then
      at = at + 1
    else
      repetition_is_last = false
      local item_at = at
      if c == PERCENT then
        local d = byte(pattern, at + 1)
        if d == LOWER_B then
          at, repetitions = at + 4, repetitions + 1          -- scans ahead for the balance
        elseif d == LOWER_F then
          at = skip_set(pattern, at + 2)
        else
          at = at + 2
          if d and d >= 48 and d <= 57 then
            repetitions = repetitions + 1                    -- compares with a capture
          end
        end
      elseif c == OPEN_SET then
        at = skip_set(pattern, at)
      else
        at = at + 1
      end
      items, longest_set = items + 1, max(longest_set, (at - item_at) // 4)
      local suffix = byte(pattern, at)
      if suffix == STAR or suffix == PLUS or suffix == MINUS then
        at, repetitions, repetition_is_last = at + 1, repetitions + 1, true
      elseif suffix == QUESTION then
        at, optional = at + 1, optional * 2.0
      end
    end
  end
  if repetition_is_last then
    repetitions = repetitions - 1
  end
  return repetitions, items * optional * longest_set
end

-- Patterns are nearly always literals, so their costs are kept; a script that makes them up empties the shelf.
local repetitions_by_pattern, factor_by_pattern, kept = {}, {}, 0
local KEPT_MAX = 64

local function charge_match(name, subject, pattern, anchors)
  local repetitions, factor = repetitions_by_pattern[pattern], factor_by_pattern[pattern]
  if not (repetitions and factor) then   -- a call may be cut off between the two
    if #pattern > PATTERN_BYTES_MAX then
      error(name .. ": the pattern has more than " .. PATTERN_BYTES_MAX .. " bytes", 3)
    end
    charge(#pattern * 10)
    repetitions, factor = cost_of(pattern)
    if kept == KEPT_MAX then
      repetitions_by_pattern, factor_by_pattern, kept = {}, {}, 0
    end
    repetitions_by_pattern[pattern], factor_by_pattern[pattern], kept = repetitions, factor, kept + 1
  end
  local length = #subject + 1.0
  local starts = (anchors and byte(pattern, 1) == CARET) and 1 or length
  local work = factor * starts * length ^ repetitions + length
  if work > work_max then
    error(format("%s: the pattern could take %.0f steps on a subject of %d bytes; a hook may take %d. "
      .. "Shorten the subject, anchor the pattern with ^, or use fewer repetitions",
      name, work, #subject, work_max), 3)
  end
  charge(work // 1)
end

local function charge_plain(subject, text)
  charge(#subject * (1 + (#text >> 6)))
end

-- Numbers are as good as strings to Lua; anything else is left to the original to complain about.
local function as_text(value)
  if type(value) == "number" then
    return tostring(value)
  end
  return value
end

local bounded = {}

function bounded.find(subject, pattern, init, plain)
  subject, pattern = as_text(subject), as_text(pattern)
  if type(subject) == "string" and type(pattern) == "string" then
    if plain or not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]") then
      charge_plain(subject, pattern)
    else
      charge_match("string.find", subject, pattern, true)
    end
  end
  return find(subject, pattern, init, plain)
end

function bounded.match(subject, pattern, init)
  subject, pattern = as_text(subject), as_text(pattern)
  if type(subject) == "string" and type(pattern) == "string" then
    charge_match("string.match", subject, pattern, true)
  end
  return match(subject, pattern, init)
end

function bounded.gmatch(subject, pattern, init)
  subject, pattern = as_text(subject), as_text(pattern)
  if type(subject) == "string" and type(pattern) == "string" then
    charge_match("string.gmatch", subject, pattern, false)
  end
  return gmatch(subject, pattern, init)
end

function bounded.gsub(subject, pattern, replacement, count)
  subject, pattern = as_text(subject), as_text(pattern)
  if type(subject) == "string" and type(pattern) == "string" then
    charge_match("string.gsub", subject, pattern, true)
    charge(#subject * 20)   -- a replacement a byte, at the worst
  end
  make_room()
  local result, replaced = gsub(subject, pattern, replacement, count)
  return hand_over(result), replaced
end

trusted.patterns = bounded
