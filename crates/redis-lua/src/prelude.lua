local pcall, xpcall, resume, thrown, collect, compile, concat = ...
local unpack, type, tonumber, error, select = unpack, type, tonumber, error, select

local function caught(ok, ...)
  if ok then return ok, ... end
  local e = ...
  if type(e) ~= 'string' then
    e = thrown(e)
    if type(e) == 'table' then
      local text = e.err
      if type(text) == 'string' or type(text) == 'number' then e = text end
    end
  end
  return false, e
end

local function resumed(ok, ...)
  if ok then return ok, ... end
  return false, thrown((...))
end

-- The interpreter counts the values of a range in an int, and writes beyond its stack when that overflows. What it would refuse is refused here, so that the
-- calls below, which leave no frame of their own, do not fail. A C function has 8,000 places for its arguments and results.
local function unpack_checked(...)
  local t, i, j = ...
  if type(t) ~= 'table' then
    local got = select('#', ...) == 0 and 'no value' or type(t)
    error("bad argument #1 to 'unpack' (table expected, got " .. got .. ')', 2)
  end
  local first, last, places = 1, nil, 7999
  if i ~= nil then
    first, places = tonumber(i), 7998
    if not first then
      error("bad argument #2 to 'unpack' (number expected, got " .. type(i) .. ')', 2)
    end
  end
  if j == nil then
    last = #t
  else
    last, places = tonumber(j), 7997
    if not last then
      error("bad argument #3 to 'unpack' (number expected, got " .. type(j) .. ')', 2)
    end
  end
  if first > last then return end
  if not (last - first < places and first >= -2147483648 and last <= 2147483647) then
    error('too many results to unpack', 2)
  end
  if j ~= nil then return unpack(t, first, last) end
  if i ~= nil then return unpack(t, first) end
  return unpack(t)
end

return {
  unpack = unpack_checked,
  pcall = function(...) return caught(pcall(...)) end,
  xpcall = function(...)
    if select('#', ...) < 2 then
      error("bad argument #2 to 'xpcall' (value expected)", 2)
    end
    local f, handler = ...
    return xpcall(f, function(e) return handler(thrown(e)) end)
  end,
  resume = function(...)
    if type((...)) ~= 'thread' then
      error("bad argument #1 to 'resume' (coroutine expected)", 2)
    end
    return resumed(resume(...))
  end,
  collectgarbage = function(option, ...)
    if option == nil or option == 'collect' or option == 'count' or option == 'step' then
      return collect(option, ...)
    end
    if option == 'stop' or option == 'restart' then return 0 end
    if option == 'setpause' or option == 'setstepmul' then return 200 end
    return collect(option, ...)
  end,
  load = function(f, name)
    local pieces = {}
    while true do
      local piece = f()
      if piece == nil or piece == '' then break end
      if type(piece) ~= 'string' then return nil, 'reader function must return a string' end
      pieces[#pieces + 1] = piece
    end
    return compile(concat(pieces), name or '=(load)')
  end,
  protected = function(...) return pcall(...) end,
  run = function(f, handler, ...)
    local values, count = {...}, select('#', ...)
    return xpcall(function() return f(unpack(values, 1, count)) end, handler)
  end,
}
